namespace KernelTls;

/// <summary>What became of one connection: the data path of each direction and, where it is not the kernel, why.</summary>
/// <param name="Send">Data path of what this end sends.</param>
/// <param name="SendFallbackReason">
/// <see cref="KtlsFallbackReason.None"/> if and only if <paramref name="Send"/> is <see cref="KtlsDataPath.Kernel"/> or
/// <see cref="KtlsDataPath.Hardware"/>.
/// </param>
/// <param name="Receive">Data path of what this end receives.</param>
/// <param name="ReceiveFallbackReason">
/// <see cref="KtlsFallbackReason.None"/> if and only if <paramref name="Receive"/> is <see cref="KtlsDataPath.Kernel"/> or
/// <see cref="KtlsDataPath.Hardware"/>.
/// </param>
public readonly record struct KtlsOffload(
    KtlsDataPath Send,
    KtlsFallbackReason SendFallbackReason,
    KtlsDataPath Receive,
    KtlsFallbackReason ReceiveFallbackReason)
{
    /// <summary>Both directions are in the kernel or in the network device.</summary>
    public bool IsComplete => IsOffloaded(Send) && IsOffloaded(Receive);

    /// <summary>One line for logs, such as <c>send=kernel receive=openssl (OpenSslTooOld)</c>.</summary>
    public override string ToString() =>
        $"send={Describe(Send, SendFallbackReason)} receive={Describe(Receive, ReceiveFallbackReason)}";

    internal static KtlsOffload Managed(KtlsFallbackReason reason) =>
        new(KtlsDataPath.Managed, reason, KtlsDataPath.Managed, reason);

    private static bool IsOffloaded(KtlsDataPath path) => path is KtlsDataPath.Kernel or KtlsDataPath.Hardware;

    private static string Describe(KtlsDataPath path, KtlsFallbackReason reason)
    {
        string name = path switch
        {
            KtlsDataPath.Kernel => "kernel",
            KtlsDataPath.Hardware => "hardware",
            KtlsDataPath.OpenSsl => "openssl",
            _ => "managed",
        };
        return reason == KtlsFallbackReason.None ? name : $"{name} ({reason})";
    }
}

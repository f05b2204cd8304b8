namespace KernelTls;

/// <summary>
/// Describes how each direction of a connection is processed and, if a direction is not offloaded, the reason.
/// </summary>
/// <param name="Send">The data path of the sending direction.</param>
/// <param name="SendFallbackReason">
/// The reason why the sending direction is not offloaded. <see cref="KtlsFallbackReason.None"/> if and only if
/// <paramref name="Send"/> is <see cref="KtlsDataPath.Kernel"/> or <see cref="KtlsDataPath.Hardware"/>.
/// </param>
/// <param name="Receive">The data path of the receiving direction.</param>
/// <param name="ReceiveFallbackReason">
/// The reason why the receiving direction is not offloaded. <see cref="KtlsFallbackReason.None"/> if and only if
/// <paramref name="Receive"/> is <see cref="KtlsDataPath.Kernel"/> or <see cref="KtlsDataPath.Hardware"/>.
/// </param>
public readonly record struct KtlsOffload(
    KtlsDataPath Send,
    KtlsFallbackReason SendFallbackReason,
    KtlsDataPath Receive,
    KtlsFallbackReason ReceiveFallbackReason)
{
    /// <summary>
    /// Gets a value that indicates whether both directions are in the kernel or in the network device.
    /// </summary>
    public bool IsComplete => IsOffloaded(Send) && IsOffloaded(Receive);

    /// <summary>Returns one line for logs, such as <c>send=kernel receive=openssl (OpenSslTooOld)</c>.</summary>
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

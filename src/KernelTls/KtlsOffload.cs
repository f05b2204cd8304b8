using KernelTls.Offload;

namespace KernelTls;

/// <summary>
/// Describes how each direction of a connection is processed and, if a direction is not offloaded, the reason.
/// </summary>
public readonly struct KtlsOffload : IEquatable<KtlsOffload>
{
    /// <summary>Initializes a new instance of the <see cref="KtlsOffload"/> struct.</summary>
    /// <param name="send">The data path of the sending direction.</param>
    /// <param name="sendFallbackReason">The reason why the sending direction is not offloaded.</param>
    /// <param name="receive">The data path of the receiving direction.</param>
    /// <param name="receiveFallbackReason">The reason why the receiving direction is not offloaded.</param>
    public KtlsOffload(
        KtlsDataPath send, KtlsFallbackReason sendFallbackReason, KtlsDataPath receive, KtlsFallbackReason receiveFallbackReason)
    {
        Send = send;
        SendFallbackReason = sendFallbackReason;
        Receive = receive;
        ReceiveFallbackReason = receiveFallbackReason;
    }

    /// <summary>Gets the data path of the sending direction.</summary>
    public KtlsDataPath Send { get; }

    /// <summary>
    /// Gets the reason why the sending direction is not offloaded. <see cref="KtlsFallbackReason.None"/> if and only if
    /// <see cref="Send"/> is <see cref="KtlsDataPath.Kernel"/> or <see cref="KtlsDataPath.Hardware"/>.
    /// </summary>
    public KtlsFallbackReason SendFallbackReason { get; }

    /// <summary>Gets the data path of the receiving direction.</summary>
    public KtlsDataPath Receive { get; }

    /// <summary>
    /// Gets the reason why the receiving direction is not offloaded. <see cref="KtlsFallbackReason.None"/> if and only if
    /// <see cref="Receive"/> is <see cref="KtlsDataPath.Kernel"/> or <see cref="KtlsDataPath.Hardware"/>.
    /// </summary>
    public KtlsFallbackReason ReceiveFallbackReason { get; }

    /// <summary>
    /// Gets the reason why <see cref="System.Net.Security.SslStream"/> processes the connection instead of OpenSSL on the socket
    /// (<see cref="KtlsFallback.OpenSsl"/>). <see cref="KtlsFallbackReason.None"/> if both data paths are others than
    /// <see cref="KtlsDataPath.Managed"/>.
    /// </summary>
    public KtlsFallbackReason OpenSslFallbackReason { get; private init; }

    /// <summary>
    /// Gets a value that indicates whether both directions are in the kernel or in the network device.
    /// </summary>
    public bool IsComplete => IsOffloaded(Send) && IsOffloaded(Receive);

    /// <summary>Returns whether two values are equal.</summary>
    /// <param name="left">The first value.</param>
    /// <param name="right">The second value.</param>
    public static bool operator ==(KtlsOffload left, KtlsOffload right) => left.Equals(right);

    /// <summary>Returns whether two values differ.</summary>
    /// <inheritdoc cref="op_Equality" path="/param"/>
    public static bool operator !=(KtlsOffload left, KtlsOffload right) => !left.Equals(right);

    /// <inheritdoc/>
    public bool Equals(KtlsOffload other) =>
        Send == other.Send
        && SendFallbackReason == other.SendFallbackReason
        && Receive == other.Receive
        && ReceiveFallbackReason == other.ReceiveFallbackReason
        && OpenSslFallbackReason == other.OpenSslFallbackReason;

    /// <inheritdoc/>
    public override bool Equals(object? obj) => obj is KtlsOffload other && Equals(other);

    /// <inheritdoc/>
    public override int GetHashCode() =>
        (((((((int)Send * 31) + (int)SendFallbackReason) * 31) + (int)Receive) * 31 + (int)ReceiveFallbackReason) * 31) + (int)OpenSslFallbackReason;

    /// <summary>Returns one line for logs, such as <c>send=kernel receive=openssl (OpenSslTooOld)</c>.</summary>
    public override string ToString() =>
        $"send={Describe(Send, SendFallbackReason)} receive={Describe(Receive, ReceiveFallbackReason)}";

    internal static KtlsOffload Managed(KtlsFallbackReason reason) => Managed(new EngineChoice(reason, reason));

    internal static KtlsOffload Managed(EngineChoice choice) =>
        new(KtlsDataPath.Managed, choice.Reason, KtlsDataPath.Managed, choice.Reason)
        {
            OpenSslFallbackReason = choice.OpenSslReason,
        };

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

using System.Security.Authentication;
using KernelTls.Interop;

namespace KernelTls.Offload;

/// <summary>
/// Describes what the running kernel accepts, as determined by the native probe: an errno per direction, version and
/// cipher.
/// </summary>
internal sealed class KernelCapabilities
{
    private const int CipherCount = 4;
    private readonly int[] _send;
    private readonly int[] _receive;

    public KernelCapabilities(
        int[] send,
        int[] receive,
        bool canRekeySend,
        bool canRekeyReceive,
        bool canExpectNoPadding = false,
        bool canZeroCopySendFile = false)
    {
        _send = send;
        _receive = receive;
        CanRekeySend = canRekeySend;
        CanRekeyReceive = canRekeyReceive;
        CanExpectNoPadding = canExpectNoPadding;
        CanZeroCopySendFile = canZeroCopySendFile;
    }

    public KernelCapabilities(in KernelProbe probe)
        : this(
            ((ReadOnlySpan<int>)probe.Send).ToArray(),
            ((ReadOnlySpan<int>)probe.Receive).ToArray(),
            probe.RekeySendErrno == 0,
            probe.RekeyReceiveErrno == 0,
            probe.NoPadErrno == 0,
            probe.ZeroCopyErrno == 0)
    {
    }

    public static KernelCapabilities Nothing { get; } = new(NothingAccepted(), NothingAccepted(), false, false);

    /// <summary>Gets a value that indicates whether a second sending key is accepted (Linux 6.14, RHEL 10).</summary>
    public bool CanRekeySend { get; }

    /// <summary>Gets a value that indicates whether a second receiving key is accepted (Linux 6.14, RHEL 10).</summary>
    public bool CanRekeyReceive { get; }

    /// <summary>
    /// Gets a value that indicates whether TLS_RX_EXPECT_NO_PAD is accepted (Linux 6.0), and neither corrupts padded records nor
    /// writes behind control records, as Linux 6.12.107 does.
    /// </summary>
    public bool CanExpectNoPadding { get; }

    /// <summary>
    /// Gets a value that indicates whether TLS_TX_ZEROCOPY_RO is accepted (Linux 5.19). It has an effect only if a
    /// network device encrypts.
    /// </summary>
    public bool CanZeroCopySendFile { get; }

    /// <summary>Returns the reason why keys of this kind are not accepted in one direction, or None.</summary>
    /// <param name="direction"><see cref="KtlsDirections.Send"/> or <see cref="KtlsDirections.Receive"/>.</param>
    /// <param name="protocol">
    /// <see cref="SslProtocols.Tls12"/> or <see cref="SslProtocols.Tls13"/>. Others are never accepted.
    /// </param>
    /// <param name="cipher">The record cipher.</param>
    public KtlsFallbackReason GetFallbackReason(KtlsDirections direction, SslProtocols protocol, CipherKind cipher)
    {
        int row = protocol switch { SslProtocols.Tls12 => 0, SslProtocols.Tls13 => 1, _ => -1 };
        if (row < 0 || cipher == CipherKind.None)
        {
            return KtlsFallbackReason.KernelTooOld;
        }

        int[] table = direction == KtlsDirections.Send ? _send : _receive;
        int errno = table[(row * CipherCount) + (int)cipher];
        return errno == 0 ? KtlsFallbackReason.None
            : Errno.IsDenial(errno) ? KtlsFallbackReason.NotPermitted
            : KtlsFallbackReason.KernelTooOld;
    }

    private static int[] NothingAccepted()
    {
        int[] table = new int[2 * CipherCount];
        for (int i = 0; i < table.Length; i++)
        {
            table[i] = Errno.NoEntry;
        }

        return table;
    }
}

using System.Security.Authentication;
using KernelTls.Interop;

namespace KernelTls.Offload;

/// <summary>What the running kernel takes, as found out by the native probe: errno per direction, version and cipher.</summary>
internal sealed class KernelAbilities
{
    private const int CipherCount = 4;
    private readonly int[] _send;
    private readonly int[] _receive;

    public KernelAbilities(
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

    public KernelAbilities(in KernelProbe probe)
        : this(
            ((ReadOnlySpan<int>)probe.Send).ToArray(),
            ((ReadOnlySpan<int>)probe.Receive).ToArray(),
            probe.RekeySendErrno == 0,
            probe.RekeyReceiveErrno == 0,
            probe.NoPadErrno == 0,
            probe.ZeroCopyErrno == 0)
    {
    }

    public static KernelAbilities Nothing { get; } = new(NothingAccepted(), NothingAccepted(), false, false);

    /// <summary>A second sending key is accepted (Linux 6.14).</summary>
    public bool CanRekeySend { get; }

    /// <summary>A second receiving key is accepted (Linux 6.14).</summary>
    public bool CanRekeyReceive { get; }

    /// <summary>TLS_RX_EXPECT_NO_PAD is accepted (Linux 6.0), and garbles nothing where a peer pads (Linux 6.12.107 does).</summary>
    public bool CanExpectNoPadding { get; }

    /// <summary>TLS_TX_ZEROCOPY_RO is accepted (Linux 5.19); it means something only where a network device encrypts.</summary>
    public bool CanZeroCopySendFile { get; }

    /// <summary>Whether keys of this kind are accepted in one direction.</summary>
    /// <param name="direction"><see cref="KtlsDirections.Send"/> or <see cref="KtlsDirections.Receive"/>.</param>
    /// <param name="protocol"><see cref="SslProtocols.Tls12"/> or <see cref="SslProtocols.Tls13"/>; others are never accepted.</param>
    /// <param name="cipher">The record cipher.</param>
    public bool Accepts(KtlsDirections direction, SslProtocols protocol, CipherKind cipher) =>
        WhyNot(direction, protocol, cipher) == KtlsFallbackReason.None;

    /// <summary>Returns why keys of this kind are not accepted, with the parameters of <see cref="Accepts"/>.</summary>
    public KtlsFallbackReason WhyNot(KtlsDirections direction, SslProtocols protocol, CipherKind cipher)
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
        Array.Fill(table, Errno.NoEntry);
        return table;
    }
}

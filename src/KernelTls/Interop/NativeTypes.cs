using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;
using System.Text;

namespace KernelTls.Interop;

// The structs of native/ktls_export.h, field for field. A unit test compares the layout with the sizes in the header.

/// <summary>Specifies the result of a TLS operation (KTLS_STATUS_*).</summary>
internal enum NativeStatus
{
    Ok = 0,
    WantRead = 1,
    WantWrite = 2,
    CloseNotify = 3,
    UnexpectedEof = 4,
    Syscall = 5,
    TlsError = 6,
    WantClientHello = 7,
    WantCertificate = 8,
    DataWaiting = 9,
    Eof = 10,
}

/// <summary>Specifies where the OCSP response is that a server has stapled (KTLS_STAPLE_*).</summary>
internal enum NativeStaple
{
    None = 0,
    Received = 1,
    Expected = 2,
}

/// <summary>Specifies the socket state to wait for (KtlsWait).</summary>
[Flags]
internal enum NativeWait
{
    Writable = 1,
    Readable = 2,
}

[StructLayout(LayoutKind.Sequential)]
internal struct NativeResult
{
    public NativeStatus Status;
    public int SysErrno;
    public long Bytes;
    public long OpenSslError;
    public int Reason;
    private readonly int _pending;
    private readonly int _keyUpdate;
    private readonly int _newSession;
    public int Messages;
    private readonly int _reserved;

    /// <summary>Gets a value that indicates whether OpenSSL's error is an alert from the peer.</summary>
    public readonly bool IsPeerAlert => Reason >= 1000;

    /// <summary>Gets a value that indicates whether a further call may find more without waiting: bytes are held or were left.</summary>
    public readonly bool Pending => _pending != 0;

    /// <summary>
    /// Gets a value that indicates whether another handshake message may be processed without waiting. OpenSSL processes one
    /// in a call, and others may have been received with it.
    /// </summary>
    public readonly bool MayHaveAnotherMessage => Pending && Messages > 0;

    /// <summary>Gets a value that indicates whether this end owes a KeyUpdate that was not sent yet.</summary>
    public readonly bool KeyUpdateDue => _keyUpdate != 0;

    /// <summary>
    /// Gets a value that indicates whether a read received a session ticket, so that there is a session to take.
    /// </summary>
    public readonly bool NewSession => _newSession != 0;
}

[InlineArray(64)]
internal struct Text64
{
    private byte _first;
}

[InlineArray(128)]
internal struct Text128
{
    private byte _first;
}

[InlineArray(256)]
internal struct Bytes256
{
    private byte _first;
}

[StructLayout(LayoutKind.Sequential)]
internal struct LibraryInfo
{
    public long OpenSslVersion;
    public int HasKtls;
    public Text128 VersionText;
    public Text64 SoName;
    public Text64 MissingSymbol;
}

[StructLayout(LayoutKind.Sequential)]
internal unsafe struct Blob
{
    public byte* Data;
    public int Length;
    private readonly int _reserved;
}

[Flags]
internal enum ContextFlags
{
    None = 0,
    EnableKtls = 0x1,
    NoTickets = 0x2,
    AllowRenegotiation = 0x4,
    VerifyPeer = 0x8,
    RequirePeer = 0x10,
    ReleaseBuffers = 0x20,
    PauseAtClientHello = 0x40,
    PauseAtCertificate = 0x80,
    ClientSessions = 0x100,
    PostHandshakeAuth = 0x200,
    SendOnly = 0x400,
    ReceiveOnly = 0x800,
}

[StructLayout(LayoutKind.Sequential)]
internal unsafe struct ContextOptions
{
    public int Role;
    public ContextFlags Flags;
    public int MinVersion;
    public int MaxVersion;
    public byte* CipherList;
    public byte* CipherSuites;
    public byte* Alpn;
    public int AlpnLength;
    public int CertificateCount;
    public Blob* Certificates;
    public nint PrivateKey;
    public byte* SessionIdContext;
    public int SessionIdContextLength;
    public int ClientCaCount;
    public Blob* ClientCas;
    public byte* SignatureAlgorithms;
    public delegate* unmanaged<byte*, void> KeyLog;
}

[StructLayout(LayoutKind.Sequential)]
internal struct ConnectionInfo
{
    public int ProtocolVersion;
    public int CipherSuite;
    public int KtlsSend;
    public int KtlsReceive;
    public int Resumed;
    public int Pending;
    public int AlpnLength;
    public Bytes256 Alpn;
    public Bytes260 ServerName;
    public int ServerNameLength;
    public int CertificateRequested;
    public int ShortRecords;
    public int Sockmap;

    /// <summary>Gets the ALPN protocol, or <see langword="null"/> for none.</summary>
    public readonly byte[]? ApplicationProtocol => AlpnLength == 0 ? null : ((ReadOnlySpan<byte>)Alpn)[..AlpnLength].ToArray();
}

/// <summary>Contains the content of a server_name extension (KTLS_SERVER_NAME_MAX).</summary>
[InlineArray(260)]
internal struct Bytes260
{
    private byte _first;
}

[StructLayout(LayoutKind.Sequential)]
internal struct ClientHelloData
{
    public int LegacyVersion;
    public int VersionsLength;
    public int ServerNameLength;
    public Bytes256 Versions;
    public Bytes260 ServerName;
}

[StructLayout(LayoutKind.Sequential)]
internal struct SessionInfo
{
    public int ProtocolVersion;
    public int Resumable;
    public long CreatedSeconds;
    public long TimeoutSeconds;
    public long TicketLifetimeSeconds;
}

/// <summary>Specifies the layer that a TCP socket already has (KTLS_LAYER_*).</summary>
internal enum SocketLayer
{
    None = 0,
    UpperLayerProtocol = 1,
    Mptcp = 2,
    Sockmap = 3,
    TlsKeys = 4,
}

/// <summary>Specifies the location of a direction's keys, as reported by the kernel (KTLS_CONF_*).</summary>
internal enum KernelConfiguration
{
    None = 0,
    Unknown = 1,
    Software = 2,
    Device = 3,
}

[StructLayout(LayoutKind.Sequential)]
internal struct SocketInfo
{
    public KernelConfiguration SendConfiguration;
    public KernelConfiguration ReceiveConfiguration;
    public int Version;
    public int Cipher;
}

[InlineArray(8)]
internal struct ProbeTable
{
    private int _first;
}

[StructLayout(LayoutKind.Sequential)]
internal struct KernelProbe
{
    public int UlpErrno;
    public ProbeTable Send;
    public ProbeTable Receive;
    public int RekeySendErrno;
    public int RekeyReceiveErrno;
    public int NoPadErrno;
    public int ZeroCopyErrno;
}

internal static class NativeText
{
    /// <summary>Decodes the text up to the first NUL.</summary>
    public static string Decode(ReadOnlySpan<byte> text) => Encoding.UTF8.GetString(Bytes(text));

    /// <summary>Returns the bytes before the first NUL.</summary>
    public static ReadOnlySpan<byte> Bytes(ReadOnlySpan<byte> text)
    {
        int end = text.IndexOf((byte)0);
        return end < 0 ? text : text[..end];
    }
}

using System.Net.Sockets;
using System.Security.Authentication;
using System.Security.Cryptography;
using KernelTls.Interop;

namespace KernelTls.IO;

/// <summary>The one place where native results and socket errors become exceptions: SslStream's own types.</summary>
internal static class TlsErrors
{
    // SSL_R_*: what OpenSSL says when the first bytes are not a TLS record.
    private const int HttpsProxyRequest = 155;
    private const int HttpRequest = 156;
    private const int WrongVersionNumber = 267;
    private const int PacketLengthTooLong = 198;
    private const int BadRecordType = 443;

    // SSL_R_*: what it says when the kernel does not take a second key.
    private const int NoSuitableRecordLayer = 322;

    public static Exception Handshake(in NativeResult result) => result.Status switch
    {
        NativeStatus.UnexpectedEof => new IOException("The peer closed the connection during the TLS handshake."),
        NativeStatus.CloseNotify => new AuthenticationException("The peer ended the TLS connection during the handshake (close_notify)."),
        NativeStatus.Syscall => Socket("The TLS handshake failed", ToSocketError(result.SysErrno)),
        _ when IsNotTls(result.Reason) => new AuthenticationException(
            "The peer does not speak TLS here: its first bytes are not a TLS record.", OpenSsl(result)),
        _ => new AuthenticationException("Authentication failed, see the inner exception.", OpenSsl(result)),
    };

    public static Exception Read(in NativeResult result, bool canRekey) => result.Status switch
    {
        NativeStatus.UnexpectedEof => Truncated(),
        NativeStatus.Syscall => Read(ToSocketError(result.SysErrno)),
        _ when result.Reason == NoSuitableRecordLayer && !canRekey => Rekey(OpenSsl(result)),
        _ => new IOException("Reading from the TLS connection failed, see the inner exception.", OpenSsl(result)),
    };

    public static IOException Read(SocketError error) => Socket("Unable to read data from the transport connection", error);

    public static Exception Write(in NativeResult result) => result.Status switch
    {
        NativeStatus.Syscall => Socket("Unable to write data to the transport connection", ToSocketError(result.SysErrno)),
        _ => new IOException("Writing to the TLS connection failed, see the inner exception.", OpenSsl(result)),
    };

    /// <summary>FIN without close_notify (RFC 8446, section 6.1): somebody may have cut the stream short.</summary>
    public static IOException Truncated() =>
        new("The connection was closed without a TLS close_notify alert: the data may be truncated.");

    public static NotSupportedException WritePending() =>
        new("This method may not be called while another write operation is pending.");

    public static IOException Broken() =>
        new("An earlier write failed or was cancelled half-way; nothing can follow it on this connection.");

    /// <summary>Of a call that works on a socket and a file: the socket is to blame.</summary>
    public static bool IsOfConnection(int errno) => ToSocketError(errno) != SocketError.SocketError;

    public static KtlsRekeyException Rekey(Exception? inner) =>
        new(KtlsRekeyFailure.NotSupported, "The peer changed its TLS 1.3 keys (KeyUpdate), and this kernel or OpenSSL cannot do so while the kernel holds "
            + "them. Linux 6.14 and OpenSSL 3.2 can; on this host, turn kernel TLS off for peers that update keys.", inner);

    /// <summary>Asked for by the application: nothing was sent, and the connection is as it was.</summary>
    public static KtlsRekeyException CannotUpdate() =>
        new(KtlsRekeyFailure.NotSupported, "The keys of this connection cannot be changed: that takes TLS 1.3 and, while the "
            + "kernel holds the keys, Linux 6.14 and OpenSSL 3.2. Nothing was sent; the connection goes on.");

    /// <summary>A key cannot change now. Nothing was sent, and the connection is as it was.</summary>
    public static IOException HalfMessage() =>
        new("The peer is in the midst of a handshake message, and no key can change before the rest of it is read. Nothing was sent.");

    public static KtlsRekeyException Flood() =>
        new(KtlsRekeyFailure.Flood, $"The peer sent more than {MessageAllowance.Most} KeyUpdates, tickets or other handshake "
            + "messages without any data between them: it can want nothing but to keep this end busy.");

    public static KtlsRekeyException RecordLimit() =>
        new(KtlsRekeyFailure.RecordLimit, "As many records were sent as one key is good for (KtlsOptions.RecordLimit), and the "
            + "key of this connection cannot be changed: that takes TLS 1.3 and, while the kernel holds the keys, Linux 6.14 "
            + "and OpenSSL 3.2. close_notify was sent; open a new connection.");

    public static IOException Socket(string what, SocketError error)
    {
        SocketException inner = new((int)error);
        return new IOException($"{what}: {inner.Message}.", inner);
    }

    /// <summary>The shim refused a call, or a system call outside the TLS exchange failed.</summary>
    public static IOException Call(string what, int errno) => new($"KernelTls: {what} failed with errno {errno}.");

    private static bool IsNotTls(int reason) =>
        reason is HttpsProxyRequest or HttpRequest or WrongVersionNumber or PacketLengthTooLong or BadRecordType;

    private static unsafe CryptographicException OpenSsl(in NativeResult result)
    {
        const int Capacity = 256;
        byte* text = stackalloc byte[Capacity];
        return result.OpenSslError != 0 && KtlsNative.KtlsNative_ErrorText(result.OpenSslError, text, Capacity) == 0
            ? new CryptographicException(NativeText.Decode(new ReadOnlySpan<byte>(text, Capacity)))
            : new CryptographicException($"OpenSSL gave no error code (status {result.Status}, errno {result.SysErrno}).");
    }

    /// <summary>The few errnos a connected TCP socket reports, in .NET's numbering.</summary>
    public static SocketError ToSocketError(int errno) => errno switch
    {
        Errno.ConnectionReset => SocketError.ConnectionReset,
        Errno.Pipe => SocketError.Shutdown,
        Errno.TimedOut => SocketError.TimedOut,
        Errno.NotConnected => SocketError.NotConnected,
        103 => SocketError.ConnectionAborted,  // ECONNABORTED
        111 => SocketError.ConnectionRefused,  // ECONNREFUSED
        112 => SocketError.HostDown,           // EHOSTDOWN
        113 => SocketError.HostUnreachable,    // EHOSTUNREACH
        101 => SocketError.NetworkUnreachable, // ENETUNREACH
        _ => SocketError.SocketError,
    };
}

using System.Diagnostics.CodeAnalysis;
using System.Net.Sockets;
using System.Runtime.ExceptionServices;
using System.Security.Authentication;
using System.Security.Cryptography;
using KernelTls.Interop;

namespace KernelTls.IO;

/// <summary>Converts native results and socket errors to exceptions of SslStream's types. No other code does.</summary>
internal static class TlsErrors
{
    public const string CannotAuthenticate = "The TLS handshake failed";

    public const string CannotRead = "Unable to read data from the transport connection";

    public const string CannotWrite = "Unable to write data to the transport connection";

    private const string AuthenticationFailed = "Authentication failed, see the inner exception.";

    // SSL_R_*: reported if the first bytes are not a TLS record.
    private const int HttpsProxyRequest = 155;
    private const int HttpRequest = 156;
    private const int WrongVersionNumber = 267;
    private const int PacketLengthTooLong = 198;
    private const int BadRecordType = 443;

    // SSL_R_*: reported if a client sends no certificate to a server that requires one.
    private const int PeerDidNotReturnACertificate = 199;

    // SSL_R_*: reported if the kernel does not accept a second key.
    private const int NoSuitableRecordLayer = 322;

    public static Exception Handshake(in NativeResult result) => result.Status switch
    {
        NativeStatus.UnexpectedEof => new IOException("The peer closed the connection during the TLS handshake."),
        NativeStatus.CloseNotify when RuntimeBehavior.TreatsCloseNotifyAsEnd =>
            new IOException("The peer ended the TLS connection during the handshake (close_notify)."),
        NativeStatus.CloseNotify => new AuthenticationException("The peer ended the TLS connection during the handshake (close_notify)."),
        NativeStatus.Syscall when result.SysErrno == Errno.KeyExpired => Fragmented(),
        NativeStatus.Syscall => Socket(CannotAuthenticate, ToSocketError(result.SysErrno)),
        _ when IsNotTls(result.Reason) => new AuthenticationException(
            "The peer does not use TLS on this connection: its first bytes are not a TLS record.", OpenSsl(result)),
        _ => new AuthenticationException(AuthenticationFailed, OpenSsl(result)),
    };

    /// <summary>Returns whether OpenSSL refused a client because it sent no certificate.</summary>
    public static bool IsCertificateMissing(in NativeResult result) =>
        result.Status == NativeStatus.TlsError && result.Reason == PeerDidNotReturnACertificate;

    /// <summary>Throws the exception that the caller gets when the peer was refused within the handshake.</summary>
    /// <param name="refusal">The refusal, or the exception of a callback.</param>
    [DoesNotReturn]
    public static void ThrowRefusal(ExceptionDispatchInfo refusal)
    {
        // An ArgumentException is about the caller's own options.
        if (RuntimeBehavior.RefusesInHandshake && refusal.SourceException is not ArgumentException)
        {
            throw new AuthenticationException(AuthenticationFailed, refusal.SourceException);
        }

        refusal.Throw();
    }

    public static Exception Read(in NativeResult result, bool canRekey) => result.Status switch
    {
        NativeStatus.UnexpectedEof => Truncated(),
        NativeStatus.Syscall when result.SysErrno == Errno.KeyExpired => Fragmented(),
        NativeStatus.Syscall => Read(ToSocketError(result.SysErrno)),
        _ when result.Reason == NoSuitableRecordLayer && !canRekey => Rekey(OpenSsl(result)),
        _ => new IOException("Reading from the TLS connection failed, see the inner exception.", OpenSsl(result)),
    };

    public static IOException Read(SocketError error) => Socket(CannotRead, error);

    public static Exception Write(in NativeResult result) => result.Status switch
    {
        NativeStatus.Syscall => Socket(CannotWrite, ToSocketError(result.SysErrno)),
        _ => new IOException("Writing to the TLS connection failed, see the inner exception.", OpenSsl(result)),
    };

    /// <summary>
    /// Returns the exception for a FIN without close_notify (RFC 8446, section 6.1). An attacker may have truncated the
    /// data.
    /// </summary>
    public static IOException Truncated() =>
        new("The connection was closed without a TLS close_notify alert: the data may be truncated.");

    public static NotSupportedException WritePending() =>
        new("This method may not be called while another write operation is pending.");

    public static IOException Broken() =>
        new("An earlier write failed or was canceled after a part was sent. Nothing more can be written to this connection.");

    /// <summary>
    /// Returns the exception of an operation that was in progress when the stream was disposed: an IOException, as on SslStream,
    /// around the socket's aborted operation or the disposal. An operation that begins later throws ObjectDisposedException.
    /// </summary>
    public static IOException Disposed(string what, Exception failure) => failure switch
    {
        IOException { InnerException: SocketException { SocketErrorCode: SocketError.OperationAborted } } aborted => aborted,
        ObjectDisposedException => new IOException($"{what}: the stream was disposed.", failure),
        _ => new IOException($"{what}: the stream was disposed.", new ObjectDisposedException(nameof(KtlsStream), failure)),
    };

    /// <summary>
    /// Returns true if errno describes a connection error rather than a file error. (sendfile reports both.)
    /// </summary>
    public static bool IsConnectionError(int errno) => ToSocketError(errno) != SocketError.SocketError;

    public static KtlsRekeyException Rekey(Exception? inner) =>
        new(KtlsRekeyFailure.NotSupported, "The peer changed its TLS 1.3 keys (KeyUpdate), and this kernel or OpenSSL cannot change keys that the kernel "
            + "holds. Upgrade to Linux 6.14, or a kernel with the backport (RHEL 10), and OpenSSL 3.2, or turn kernel TLS off for peers that update keys.", inner);

    /// <summary>
    /// Returns the exception for an update that the application requested. Nothing was sent, and the connection is
    /// unchanged.
    /// </summary>
    public static KtlsRekeyException CannotUpdate() =>
        new(KtlsRekeyFailure.NotSupported, "The keys of this connection cannot be changed. That requires TLS 1.3 and, while the "
            + "kernel holds the keys, Linux 6.14, or a kernel with the backport (RHEL 10), and OpenSSL 3.2. Nothing was sent; the connection can still be used.");

    /// <summary>
    /// Returns the exception for a key that cannot change now. Nothing was sent, and the connection is unchanged.
    /// </summary>
    public static IOException IncompleteMessage() =>
        new("Only a part of a handshake message from the peer has been read. The key cannot be changed before a read has received the rest. Nothing was sent.");

    public static KtlsRekeyException TooManyMessages() =>
        new(KtlsRekeyFailure.Flood, $"The peer sent more than {HandshakeMessageLimiter.Burst} KeyUpdates, tickets or other "
            + "handshake messages without data between them, and one more for each record sent to it. Such messages only "
            + "consume resources, so the connection was ended.");

    private static KtlsRekeyException Fragmented() =>
        new(KtlsRekeyFailure.FragmentedMessage, "The peer sent a handshake message in several records, such as a session ticket or a certificate of "
            + "more than 16 KiB. The kernel treated one of them as a KeyUpdate and waits for a new key (EKEYEXPIRED). The connection was ended. "
            + "Make the peer's tickets and certificates smaller, or leave receiving to OpenSSL (KtlsOptions.Directions).");

    public static KtlsRekeyException RecordLimit() =>
        new(KtlsRekeyFailure.RecordLimit, "The key has encrypted the maximum number of records (KtlsOptions.RecordLimit), and the "
            + "key of this connection cannot be changed. That requires TLS 1.3 and, while the kernel holds the keys, Linux 6.14, or "
            + "a kernel with the backport (RHEL 10), and OpenSSL 3.2. close_notify was sent. Open a new connection.");

    public static IOException Socket(string what, SocketError error)
    {
        SocketException inner = new((int)error);
        return new IOException($"{what}: {inner.Message}.", inner);
    }

    /// <summary>
    /// Returns the exception for a call that the shim refused, or for a failed system call outside the TLS exchange.
    /// </summary>
    public static IOException Call(string what, int errno) => new($"KernelTls: {what} failed with errno {errno}.");

    private static bool IsNotTls(int reason) =>
        reason is HttpsProxyRequest or HttpRequest or WrongVersionNumber or PacketLengthTooLong or BadRecordType;

    private static unsafe CryptographicException OpenSsl(in NativeResult result)
    {
        const int Capacity = 256;
        byte* text = stackalloc byte[Capacity];
        return result.OpenSslError != 0 && KtlsNative.KtlsNative_ErrorText(result.OpenSslError, text, Capacity) == 0
            ? new CryptographicException(NativeText.Decode(new ReadOnlySpan<byte>(text, Capacity)))
            : new CryptographicException($"OpenSSL returned no error code (status {result.Status}, errno {result.SysErrno}).");
    }

    /// <summary>Converts the errnos that a connected TCP socket reports to .NET's socket errors.</summary>
    public static SocketError ToSocketError(int errno) => errno switch
    {
        Errno.ConnectionReset => SocketError.ConnectionReset,
        Errno.Pipe => SocketError.Shutdown,
        Errno.TimedOut => SocketError.TimedOut,
        Errno.NotConnected => SocketError.NotConnected,
        Errno.NoBuffers => SocketError.NoBufferSpaceAvailable,
        103 => SocketError.ConnectionAborted,  // ECONNABORTED
        111 => SocketError.ConnectionRefused,  // ECONNREFUSED
        112 => SocketError.HostDown,           // EHOSTDOWN
        113 => SocketError.HostUnreachable,    // EHOSTUNREACH
        101 => SocketError.NetworkUnreachable, // ENETUNREACH
        _ => SocketError.SocketError,
    };
}

using System.Runtime.InteropServices;

namespace KernelTls.Bench.Poc;

/// <summary>
/// Declares the functions of libssl that the proof of concept uses. The library is the image that .NET has loaded.
/// </summary>
internal static unsafe partial class LibSsl
{
    public const ulong OptionEnableKtls = 1 << 3;
    public const ulong OptionNoTicket = 1 << 14;
    public const int ControlMode = 33;
    public const int ControlSessionCacheMode = 44;
    public const nint ModeReleaseBuffers = 0x10;
    public const nint ModeAcceptMovingWriteBuffer = 0x2;
    public const int ControlMinProtocol = 123;
    public const nint Tls13 = 0x0304;
    public const int GetKtlsSend = 73;
    public const int GetKtlsReceive = 76;
    public const int ErrorWantRead = 2;
    public const int ErrorWantWrite = 3;
    public const int ErrorSyscall = 5;
    public const int ErrorZeroReturn = 6;
    public const int Again = 11;

    private const string Ssl = "libssl.so.3";
    private const string Crypto = "libcrypto.so.3";

    [LibraryImport(Ssl)]
    public static partial nint TLS_method();

    [LibraryImport(Ssl)]
    public static partial nint SSL_CTX_new(nint method);

    [LibraryImport(Ssl)]
    public static partial ulong SSL_CTX_set_options(nint context, ulong options);

    [LibraryImport(Ssl)]
    public static partial nint SSL_CTX_ctrl(nint context, int command, nint value, nint pointer);

    [LibraryImport(Ssl)]
    public static partial int SSL_CTX_set_num_tickets(nint context, nuint tickets);

    [LibraryImport(Ssl)]
    public static partial int SSL_CTX_use_certificate(nint context, nint certificate);

    [LibraryImport(Ssl)]
    public static partial int SSL_CTX_use_PrivateKey(nint context, nint key);

    [LibraryImport(Ssl)]
    public static partial nint SSL_new(nint context);

    [LibraryImport(Ssl)]
    public static partial void SSL_free(nint ssl);

    [LibraryImport(Ssl)]
    public static partial int SSL_set_fd(nint ssl, int descriptor);

    [LibraryImport(Ssl)]
    public static partial void SSL_set_connect_state(nint ssl);

    [LibraryImport(Ssl)]
    public static partial void SSL_set_accept_state(nint ssl);

    [LibraryImport(Ssl, StringMarshalling = StringMarshalling.Utf8)]
    public static partial nint SSL_ctrl(nint ssl, int command, nint value, string name);

    [LibraryImport(Ssl, SetLastError = true)]
    public static partial int SSL_do_handshake(nint ssl);

    [LibraryImport(Ssl, SetLastError = true)]
    public static partial int SSL_read(nint ssl, byte* buffer, int length);

    [LibraryImport(Ssl, SetLastError = true)]
    public static partial int SSL_shutdown(nint ssl);

    [LibraryImport(Ssl)]
    public static partial int SSL_get_error(nint ssl, int result);

    [LibraryImport(Ssl)]
    public static partial nint SSL_get_rbio(nint ssl);

    [LibraryImport(Ssl)]
    public static partial nint SSL_get_wbio(nint ssl);

    [LibraryImport(Ssl)]
    public static partial nint SSL_get1_peer_certificate(nint ssl);

    [LibraryImport(Ssl)]
    public static partial nint SSL_get_current_cipher(nint ssl);

    [LibraryImport(Ssl)]
    public static partial ushort SSL_CIPHER_get_protocol_id(nint cipher);

    [LibraryImport(Ssl)]
    public static partial nint SSL_get1_session(nint ssl);

    [LibraryImport(Ssl)]
    public static partial int SSL_set_session(nint ssl, nint session);

    [LibraryImport(Ssl)]
    public static partial int SSL_set_alpn_protos(nint ssl, byte* protocols, uint length);

    [LibraryImport(Ssl)]
    public static partial void SSL_SESSION_free(nint session);

    [LibraryImport(Crypto)]
    public static partial nint BIO_ctrl(nint bio, int command, nint value, nint pointer);

    [LibraryImport(Crypto)]
    public static partial void X509_free(nint certificate);

    [LibraryImport(Crypto)]
    public static partial void ERR_clear_error();
}

using System.Runtime.InteropServices;

namespace KernelTls.ConformanceTests;

/// <summary>Declares the functions of the OpenSSL of this process that <see cref="OpenSslPeer"/> calls.</summary>
internal static unsafe partial class LibSsl
{
    public const int ErrorWantRead = 2;
    public const int VerifyPeer = 1;

    private const string Ssl = "libssl";
    private const string Crypto = "libcrypto";

    static LibSsl() => NativeLibrary.SetDllImportResolver(
        typeof(LibSsl).Assembly,
        static (name, _, _) => name is Ssl or Crypto ? NativeLibrary.Load($"{name}.so.{KtlsPlatform.Probe().OpenSslVersion.Major}") : 0);

    /// <summary>The numbers of SSL_ctrl and SSL_CTX_ctrl (openssl/ssl.h).</summary>
    public enum Control
    {
        MessageCallbackArgument = 16,
        SessionCacheMode = 44,
        ServerName = 55,
        StatusRequestType = 65,
        Groups = 92,
        SignatureAlgorithms = 98,
        MinVersion = 123,
        MaxVersion = 124,
    }

    [LibraryImport(Ssl, EntryPoint = "TLS_method")]
    public static partial nint Method();

    [LibraryImport(Ssl, EntryPoint = "SSL_CTX_new")]
    public static partial nint NewContext(nint method);

    [LibraryImport(Ssl, EntryPoint = "SSL_CTX_free")]
    public static partial void FreeContext(nint context);

    [LibraryImport(Ssl, EntryPoint = "SSL_CTX_ctrl", StringMarshalling = StringMarshalling.Utf8)]
    public static partial nint ContextControl(nint context, Control command, nint number, string? text);

    [LibraryImport(Ssl, EntryPoint = "SSL_CTX_use_certificate_ASN1")]
    public static partial int UseCertificate(nint context, int length, ReadOnlySpan<byte> der);

    [LibraryImport(Ssl, EntryPoint = "SSL_CTX_use_PrivateKey_ASN1")]
    public static partial int UsePrivateKey(int type, nint context, ReadOnlySpan<byte> der, nint length);

    [LibraryImport(Ssl, EntryPoint = "SSL_CTX_set_verify")]
    public static partial void SetVerify(nint context, int mode, nint callback);

    [LibraryImport(Ssl, EntryPoint = "SSL_CTX_set_cert_verify_callback")]
    public static partial void SetVerifyCallback(nint context, delegate* unmanaged<nint, nint, int> callback, nint argument);

    [LibraryImport(Ssl, EntryPoint = "SSL_CTX_set_session_id_context")]
    public static partial int SetSessionIdContext(nint context, ReadOnlySpan<byte> id, uint length);

    [LibraryImport(Ssl, EntryPoint = "SSL_CTX_set_alpn_protos")]
    public static partial int SetAlpn(nint context, ReadOnlySpan<byte> protocols, uint length);

    [LibraryImport(Ssl, EntryPoint = "SSL_CTX_set_alpn_select_cb")]
    public static partial void SetAlpnCallback(
        nint context, delegate* unmanaged<nint, byte**, byte*, byte*, uint, nint, int> callback, nint argument);

    [LibraryImport(Ssl, EntryPoint = "SSL_CTX_set_cipher_list", StringMarshalling = StringMarshalling.Utf8)]
    public static partial int SetCipherList(nint context, string list);

    [LibraryImport(Ssl, EntryPoint = "SSL_new")]
    public static partial nint New(nint context);

    [LibraryImport(Ssl, EntryPoint = "SSL_free")]
    public static partial void Free(nint ssl);

    [LibraryImport(Ssl, EntryPoint = "SSL_ctrl", StringMarshalling = StringMarshalling.Utf8)]
    public static partial nint SslControl(nint ssl, Control command, nint number, string? text);

    [LibraryImport(Ssl, EntryPoint = "SSL_ctrl")]
    public static partial nint SslControl(nint ssl, Control command, nint number, nint pointer);

    [LibraryImport(Ssl, EntryPoint = "SSL_set_msg_callback")]
    public static partial void SetMessageCallback(
        nint ssl, delegate* unmanaged<int, int, int, byte*, nuint, nint, nint, void> callback);

    [LibraryImport(Ssl, EntryPoint = "SSL_set_bio")]
    public static partial void SetBios(nint ssl, nint read, nint write);

    [LibraryImport(Ssl, EntryPoint = "SSL_set_accept_state")]
    public static partial void SetAcceptState(nint ssl);

    [LibraryImport(Ssl, EntryPoint = "SSL_set_connect_state")]
    public static partial void SetConnectState(nint ssl);

    [LibraryImport(Ssl, EntryPoint = "SSL_do_handshake")]
    public static partial int Handshake(nint ssl);

    [LibraryImport(Ssl, EntryPoint = "SSL_read")]
    public static partial int Read(nint ssl, Span<byte> buffer, int length);

    [LibraryImport(Ssl, EntryPoint = "SSL_write")]
    public static partial int Write(nint ssl, ReadOnlySpan<byte> buffer, int length);

    [LibraryImport(Ssl, EntryPoint = "SSL_shutdown")]
    public static partial int Shutdown(nint ssl);

    [LibraryImport(Ssl, EntryPoint = "SSL_get_error")]
    public static partial int GetError(nint ssl, int result);

    [LibraryImport(Ssl, EntryPoint = "SSL_version")]
    public static partial int Version(nint ssl);

    [LibraryImport(Ssl, EntryPoint = "SSL_get1_session")]
    public static partial nint GetSession(nint ssl);

    [LibraryImport(Ssl, EntryPoint = "SSL_set_session")]
    public static partial int SetSession(nint ssl, nint session);

    [LibraryImport(Ssl, EntryPoint = "SSL_SESSION_free")]
    public static partial void FreeSession(nint session);

    [LibraryImport(Crypto, EntryPoint = "BIO_new")]
    public static partial nint NewBio(nint method);

    [LibraryImport(Crypto, EntryPoint = "BIO_s_mem")]
    public static partial nint MemoryBio();

    [LibraryImport(Crypto, EntryPoint = "BIO_read")]
    public static partial int ReadBio(nint bio, Span<byte> buffer, int length);

    [LibraryImport(Crypto, EntryPoint = "BIO_write")]
    public static partial int WriteBio(nint bio, ReadOnlySpan<byte> buffer, int length);

    [LibraryImport(Crypto, EntryPoint = "ERR_clear_error")]
    public static partial void ClearErrors();
}

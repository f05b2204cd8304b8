namespace KernelTls;

/// <summary>
/// Specifies what processes the TLS records of a connection that was to use kernel TLS, where the kernel cannot.
/// </summary>
/// <remarks>
/// OpenSSL on the socket needs what kernel TLS needs of the process (Linux, OpenSSL 3 or 4, a socket), but nothing of the kernel. It copies less
/// than <see cref="System.Net.Security.SslStream"/>, whose OpenSSL never sees the socket. Where it is not possible either,
/// SslStream is used, and <see cref="KtlsOffload.OpenSslFallbackReason"/> has the reason.
/// <c>DOTNET_SYSTEM_NET_SECURITY_KTLS=0</c> overrides this choice: SslStream is used.
/// </remarks>
public enum KtlsFallback
{
    /// <summary>
    /// OpenSSL on the socket if the environment variable <c>DOTNET_SYSTEM_NET_SECURITY_DIRECT_OPENSSL</c> is <c>1</c> or <c>true</c>,
    /// otherwise <see cref="System.Net.Security.SslStream"/>.
    /// </summary>
    Environment = 0,

    /// <summary>The base class, <see cref="System.Net.Security.SslStream"/>.</summary>
    SslStream = 1,

    /// <summary>OpenSSL on the socket.</summary>
    OpenSsl = 2,
}

namespace KernelTls;

/// <summary>Specifies whether a <see cref="KtlsStream"/> uses kernel TLS.</summary>
/// <remarks>
/// <para>
/// <c>DOTNET_SYSTEM_NET_SECURITY_KTLS=0</c> is the operator's kill switch: it overrides <see cref="Preferred"/> and
/// <see cref="KtlsOptions.Fallback"/>, and makes <see cref="Required"/> fail.
/// </para>
/// <para>docs/switches.md shows the result of every combination of mode, fallback and variables.</para>
/// </remarks>
public enum KtlsMode
{
    /// <summary>
    /// Uses kernel TLS only if the environment variable <c>DOTNET_SYSTEM_NET_SECURITY_KTLS</c> is <c>1</c> or
    /// <c>true</c>. If the variable is not set, the <see cref="AppContext"/> switch <c>System.Net.Security.Ktls</c>
    /// decides. If neither is set, <c>DOTNET_SYSTEM_NET_SECURITY_DIRECT_OPENSSL=1</c> puts OpenSSL on the socket, without the kernel.
    /// </summary>
    Environment = 0,

    /// <summary>
    /// Never uses kernel TLS. With <see cref="KtlsFallback.OpenSsl"/>, OpenSSL uses the socket; otherwise the stream is a plain
    /// <see cref="System.Net.Security.SslStream"/>.
    /// </summary>
    Disabled = 1,

    /// <summary>
    /// Uses kernel TLS if possible, and otherwise what <see cref="KtlsOptions.Fallback"/> names.
    /// </summary>
    /// <remarks>
    /// One kind of handshake fails that <see cref="System.Net.Security.SslStream"/> would complete: a server's options callback returns
    /// options that only SslStream supports. OpenSSL has read the ClientHello by then, so the handshake fails with a
    /// <see cref="KtlsNotAvailableException"/> and the reason.
    /// </remarks>
    Preferred = 2,

    /// <summary>
    /// Requires kernel TLS in the directions of <see cref="KtlsOptions.Directions"/>. Otherwise the handshake fails
    /// with a <see cref="KtlsNotAvailableException"/> that contains the reason.
    /// </summary>
    Required = 3,
}

namespace KernelTls;

/// <summary>Specifies whether a <see cref="KtlsStream"/> uses kernel TLS.</summary>
/// <remarks>
/// <c>DOTNET_SYSTEM_NET_SECURITY_KTLS=0</c> is the operator's kill switch: it overrides <see cref="Preferred"/> and
/// makes <see cref="Required"/> fail.
/// </remarks>
public enum KtlsMode
{
    /// <summary>
    /// Uses kernel TLS only if the environment variable <c>DOTNET_SYSTEM_NET_SECURITY_KTLS</c> is <c>1</c> or
    /// <c>true</c>. If the variable is not set, the <see cref="AppContext"/> switch <c>System.Net.Security.Ktls</c>
    /// decides.
    /// </summary>
    Environment = 0,

    /// <summary>Never uses kernel TLS. The stream is a plain <see cref="System.Net.Security.SslStream"/>.</summary>
    Disabled = 1,

    /// <summary>
    /// Uses kernel TLS if possible. Never fails if <see cref="System.Net.Security.SslStream"/> would succeed.
    /// </summary>
    Preferred = 2,

    /// <summary>
    /// Requires kernel TLS in the directions of <see cref="KtlsOptions.Directions"/>. Otherwise the handshake fails
    /// with a <see cref="KtlsNotAvailableException"/> that contains the reason.
    /// </summary>
    Required = 3,
}

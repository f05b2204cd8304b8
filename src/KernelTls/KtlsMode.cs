namespace KernelTls;

/// <summary>Whether a <see cref="KtlsStream"/> may use kernel TLS.</summary>
/// <remarks>
/// <c>DOTNET_SYSTEM_NET_SECURITY_KTLS=0</c> is the operator's kill switch: it overrules <see cref="Preferred"/> and makes
/// <see cref="Required"/> fail.
/// </remarks>
public enum KtlsMode
{
    /// <summary>
    /// Kernel TLS if and only if the environment variable <c>DOTNET_SYSTEM_NET_SECURITY_KTLS</c> is <c>1</c> or
    /// <c>true</c>, or, where it is not set, the <see cref="AppContext"/> switch <c>System.Net.Security.Ktls</c> is on.
    /// </summary>
    Environment = 0,

    /// <summary>Never; the stream is a plain <see cref="System.Net.Security.SslStream"/>.</summary>
    Disabled = 1,

    /// <summary>Wherever possible. Never fails where <see cref="System.Net.Security.SslStream"/> would succeed.</summary>
    Preferred = 2,

    /// <summary>
    /// In both directions, or the ones that <see cref="KtlsOptions.Directions"/> asks for, or the handshake fails with a <see cref="KtlsNotAvailableException"/> that names the reason.
    /// </summary>
    Required = 3,
}

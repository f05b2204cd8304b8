namespace KernelTls.Interop;

/// <summary>
/// Describes the behavior of <see cref="System.Net.Security.SslStream"/> and Kestrel that differs between versions of .NET.
/// This library follows the running version. No other code checks the version.
/// </summary>
internal static class RuntimeBehavior
{
    private const int Net11 = 11;

    /// <summary>Gets a value that indicates whether the peer is refused within the handshake.</summary>
    /// <remarks>
    /// In that case <see cref="System.Security.Authentication.AuthenticationException"/> contains the refusal, or the
    /// exception of the callback, as its inner exception, and the alert for a callback's refusal is handshake_failure.
    /// .NET 10 throws the refusal itself and sends no alert.
    /// </remarks>
    public static bool RefusesInHandshake { get; } = Environment.Version.Major >= Net11;

    /// <summary>
    /// Gets a value that indicates whether reading and writing after a refusal throws
    /// <see cref="InvalidOperationException"/>, as after any other failed handshake. .NET 10 throws the refusal again.
    /// </summary>
    public static bool ForgetsRefusal { get; } = Environment.Version.Major >= Net11;

    /// <summary>
    /// Gets a value that indicates whether close_notify during the handshake counts as an end of stream. .NET 10 throws
    /// an authentication failure.
    /// </summary>
    public static bool TreatsCloseNotifyAsEnd { get; } = Environment.Version.Major >= Net11;

    /// <summary>
    /// Gets a value that indicates whether a client's validation callback finds the server's own certificate in front of the
    /// others in the chain's <see cref="System.Security.Cryptography.X509Certificates.X509ChainPolicy.ExtraStore"/>. .NET 11
    /// puts it there on a resumed connection only.
    /// </summary>
    public static bool ShowsLeafAmongIssuers { get; } = Environment.Version.Major < Net11;

    /// <summary>
    /// Gets a value that indicates whether a server without a chain policy of its own downloads the certificates that a
    /// client's certificate names. Since .NET 11 it does so only by the AppContext switch
    /// <c>System.Net.Security.EnableServerAiaDownloads</c> or its environment variable.
    /// </summary>
    public static bool ServersDownloadCertificates { get; } = Environment.Version.Major < Net11 || RuntimeSwitch.IsSet(
        "System.Net.Security.EnableServerAiaDownloads", "DOTNET_SYSTEM_NET_SECURITY_ENABLESERVERAIADOWNLOADS");

    /// <summary>
    /// Gets a value that indicates whether the first negotiation with a client that did not offer post-handshake authentication completes without
    /// a certificate. .NET 10, and every later negotiation, throws.
    /// </summary>
    public static bool CompletesWithoutOffer { get; } = Environment.Version.Major >= Net11;

    /// <summary>Gets a value that indicates whether Kestrel's connections have IConnectionEndPointFeature.</summary>
    public static bool HasEndPointFeature { get; } = Environment.Version.Major >= Net11;
}

using System.Security.Cryptography;
using System.Security.Cryptography.X509Certificates;

namespace KernelTls.Handshake;

/// <summary>
/// Records that a server's chain was found valid, by which policy, and until when a resumed session may rely on it
/// without building the chain again. Immutable.
/// </summary>
/// <remarks>
/// The server does not send its certificates when a session is resumed (RFC 8446, section 2.2), so the same policy
/// would validate the same chain. The result is reused only if nothing but time could change it: no callback, no
/// revocation check, no store that is opened again, the same rules and the very same roots. The system's trusted roots
/// may change in the meantime; <see cref="Lifetime"/> is the time that .NET itself may take to notice that.
/// </remarks>
internal sealed class CachedValidationResult
{
    internal static readonly TimeSpan Lifetime = TimeSpan.FromMinutes(5);

    private readonly X509ChainPolicy? _policy;
    private readonly long _validatedMilliseconds;
    private readonly DateTime _notBefore;
    private readonly DateTime _notAfter;

    private CachedValidationResult(X509ChainPolicy? policy, X509ChainElementCollection chain)
    {
        _policy = policy;
        _validatedMilliseconds = Environment.TickCount64;
        _notBefore = chain.Max(e => e.Certificate.NotBefore.ToUniversalTime());
        _notAfter = chain.Min(e => e.Certificate.NotAfter.ToUniversalTime());
    }

    /// <summary>
    /// Returns the result for a chain that was just found valid, or <see langword="null"/> if it must be validated each
    /// time.
    /// </summary>
    /// <param name="settings">The settings by which it was validated.</param>
    /// <param name="chain">The chain that was built.</param>
    public static CachedValidationResult? TryCreate(HandshakeSettings settings, X509Chain chain) =>
        settings.Resumes && DependsOnTimeAlone(settings) ? new CachedValidationResult(settings.ChainPolicy, chain.ChainElements) : null;

    /// <summary>
    /// Returns whether validating the same chain by these settings would give the same result without calling
    /// application code.
    /// </summary>
    /// <param name="settings">The settings of the connection that resumes the session.</param>
    /// <param name="now">The current time, UTC.</param>
    /// <param name="milliseconds">The current <see cref="Environment.TickCount64"/>, which never goes back.</param>
    public bool AppliesTo(HandshakeSettings settings, DateTime now, long milliseconds) =>
        settings.ValidationCallback is null
        && DependsOnTimeAlone(settings)
        && milliseconds - _validatedMilliseconds < Lifetime.TotalMilliseconds
        && _notBefore <= now && now <= _notAfter
        && Same(_policy, settings.ChainPolicy);

    private static bool DependsOnTimeAlone(HandshakeSettings settings) =>
        !settings.Revalidates
        && settings.Trust is null
        && (settings.ChainPolicy is { } policy
            ? policy.RevocationMode == X509RevocationMode.NoCheck && policy.VerificationTimeIgnored
            : settings.RevocationMode == X509RevocationMode.NoCheck);

    private static bool Same(X509ChainPolicy? left, X509ChainPolicy? right)
    {
        if (left is null || right is null)
        {
            return left == right;
        }

        return left.TrustMode == right.TrustMode
            && left.VerificationFlags == right.VerificationFlags
            && left.DisableCertificateDownloads == right.DisableCertificateDownloads
            && Same(left.CustomTrustStore, right.CustomTrustStore)
            && Same(left.ExtraStore, right.ExtraStore)
            && Same(left.ApplicationPolicy, right.ApplicationPolicy)
            && Same(left.CertificatePolicy, right.CertificatePolicy);
    }

    /// <summary>
    /// Returns whether both collections contain the same objects, none of them disposed. Equal objects do not count:
    /// comparing certificates would cost as much as it saves.
    /// </summary>
    private static bool Same(X509Certificate2Collection left, X509Certificate2Collection right) =>
        left.SequenceEqual<X509Certificate2>(right, ReferenceEqualityComparer.Instance) && left.All(c => c.Handle != 0);

    private static bool Same(OidCollection left, OidCollection right) =>
        left.Cast<Oid>().Select(o => o.Value).SequenceEqual(right.Cast<Oid>().Select(o => o.Value));
}

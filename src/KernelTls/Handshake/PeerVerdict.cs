using System.Security.Cryptography;
using System.Security.Cryptography.X509Certificates;

namespace KernelTls.Handshake;

/// <summary>
/// That a server's chain was found good, by which policy, and until when this can be said again without building the chain: the
/// server does not send its certificates when a session is resumed (RFC 8446, section 2.2), so the same policy would be given
/// the same chain. Immutable.
/// </summary>
/// <remarks>
/// It is said again only where nobody else has a say and nothing but time could change the answer: no callback, no revocation
/// check, no store that is opened anew, the same rules and the very same roots. The system's trust can change meanwhile;
/// <see cref="Lifetime"/> is how long .NET itself may take to notice that.
/// </remarks>
internal sealed class PeerVerdict
{
    internal static readonly TimeSpan Lifetime = TimeSpan.FromMinutes(5);

    private readonly X509ChainPolicy? _policy;
    private readonly long _judgedMilliseconds;
    private readonly DateTime _notBefore;
    private readonly DateTime _notAfter;

    private PeerVerdict(X509ChainPolicy? policy, X509ChainElementCollection chain)
    {
        _policy = policy;
        _judgedMilliseconds = Environment.TickCount64;
        _notBefore = chain.Max(e => e.Certificate.NotBefore.ToUniversalTime());
        _notAfter = chain.Min(e => e.Certificate.NotAfter.ToUniversalTime());
    }

    /// <summary>The verdict on a chain that was just found without error, <see langword="null"/> where it must be found each time.</summary>
    /// <param name="settings">What it was judged by.</param>
    /// <param name="chain">The chain that was built.</param>
    public static PeerVerdict? Of(HandshakeSettings settings, X509Chain chain) =>
        settings.Resumes && DependsOnTimeAlone(settings) ? new PeerVerdict(settings.ChainPolicy, chain.ChainElements) : null;

    /// <summary>Judging the same chain by these settings would come to the same, and nobody else is to be asked.</summary>
    /// <param name="settings">Those of the connection that resumes the session.</param>
    /// <param name="now">The time, UTC.</param>
    /// <param name="milliseconds">The same as <see cref="Environment.TickCount64"/>, which nobody sets back.</param>
    public bool Holds(HandshakeSettings settings, DateTime now, long milliseconds) =>
        settings.ValidationCallback is null
        && DependsOnTimeAlone(settings)
        && milliseconds - _judgedMilliseconds < Lifetime.TotalMilliseconds
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

    /// <summary>The same objects, none of them disposed: equal ones are not looked for, because the search costs what it saves.</summary>
    private static bool Same(X509Certificate2Collection left, X509Certificate2Collection right) =>
        left.SequenceEqual<X509Certificate2>(right, ReferenceEqualityComparer.Instance) && left.All(c => c.Handle != 0);

    private static bool Same(OidCollection left, OidCollection right) =>
        left.Cast<Oid>().Select(o => o.Value).SequenceEqual(right.Cast<Oid>().Select(o => o.Value));
}

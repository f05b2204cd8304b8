using System.Net.Security;
using System.Runtime.Loader;
using System.Security.Cryptography;
using System.Security.Cryptography.X509Certificates;
using KernelTls.Handshake;
using KernelTls.Interop;
using KernelTls.Offload;
using KernelTls.Tests;

namespace KernelTls.UnitTests;

/// <summary>
/// Tests when a resumed session's certificate is accepted without building its chain. The chain is not trusted, so
/// accepting it shows that it was not built.
/// </summary>
public class CachedValidationResultTests
{
    private const string Switch = "System.Net.Security.RevalidateCertificateOnTlsResume";

    public static TheoryData<string> Changes =>
    [
        "callback", "switch", "roots of the own certificate", "no policy", "revocation", "time of its own", "trust mode", "flags", "downloads",
        "one more root", "an equal root", "a disposed root", "an intermediate", "use", "certificate policy",
    ];

    [Fact]
    public void The_same_rules_need_not_look_twice()
    {
        X509Certificate2 leaf = Certificates.WithoutKey(Certificates.SelfSigned);
        X509Certificate2 issuer = Certificates.WithoutKey(Certificates.Authority);
        CachedValidationResult cached = Validate(Settings());
        PeerVerifier verifier = new(this, Settings(), () => { });

        verifier.ValidateResumed([leaf, issuer], cached);

        Assert.Null(verifier.Refusal);
        Assert.Same(leaf, verifier.Certificate);
        Assert.Same(cached, verifier.CachedResult);
        Assert.NotEqual(0, leaf.Handle);
        Assert.Equal(0, issuer.Handle);
    }

    [Theory]
    [MemberData(nameof(Changes))]
    public void Whoever_has_another_say_looks_again(string change)
    {
        X509Certificate2 root = Certificates.WithoutKey(Certificates.Authority);
        X509ChainPolicy policy = Policy(root);
        CachedValidationResult cached = Validate(Settings(policy));
        Assert.True(Accepts(cached, Settings(policy)), "as it was");

        HandshakeSettings changed = Settings(policy);
        X509ChainPolicy rules = changed.ChainPolicy!;
        switch (change)
        {
            case "callback": changed = changed with { ValidationCallback = (_, _, _, errors) => errors == SslPolicyErrors.None }; break;
            case "switch": changed = changed with { Revalidates = true }; break;
            case "roots of the own certificate": changed = changed with { Trust = new CertificateTrust(null, [root], Announced: false) }; break;
            case "no policy": changed = changed with { ChainPolicy = null }; break;
            case "revocation": rules.RevocationMode = X509RevocationMode.Offline; break;
            case "time of its own": rules.VerificationTimeIgnored = false; break;
            case "trust mode": rules.CustomTrustStore.Clear(); rules.TrustMode = X509ChainTrustMode.System; break;
            case "flags": rules.VerificationFlags = X509VerificationFlags.IgnoreNotTimeValid; break;
            case "downloads": rules.DisableCertificateDownloads = false; break;
            case "one more root": rules.CustomTrustStore.Add(Certificates.Authority); break;
            case "an equal root": rules.CustomTrustStore[0] = Certificates.Authority; break;
            case "a disposed root": root.Dispose(); break;
            case "an intermediate": rules.ExtraStore.Add(Certificates.Authority); break;
            case "use": rules.ApplicationPolicy.Add(new Oid("1.3.6.1.5.5.7.3.1")); break;
            case "certificate policy": rules.CertificatePolicy.Add(new Oid("2.5.29.32.0")); break;
            default: Assert.Fail(change); break;
        }

        if (change == "a disposed root")
        {
            // As in the first connection that gets such a policy.
            Assert.ThrowsAny<CryptographicException>(() => Accepts(cached, changed));
            return;
        }

        Assert.False(Accepts(cached, changed), "without looking");
    }

    [Fact]
    public void A_cached_result_expires_with_its_certificates_and_after_its_lifetime()
    {
        HandshakeSettings settings = Settings();
        long before = Environment.TickCount64;
        CachedValidationResult cached = Validate(Settings());
        long after = Environment.TickCount64;
        long lifetime = (long)CachedValidationResult.Lifetime.TotalMilliseconds;
        DateTime notBefore = Latest(Certificates.Ecdsa.NotBefore, Certificates.Authority.NotBefore);
        DateTime notAfter = Earliest(Certificates.Ecdsa.NotAfter, Certificates.Authority.NotAfter);

        Assert.True(cached.AppliesTo(settings, notBefore, after), "at the first moment");
        Assert.False(cached.AppliesTo(settings, notBefore.AddSeconds(-1), after), "before the first moment");
        Assert.True(cached.AppliesTo(settings, notAfter, after), "at the last moment");
        Assert.False(cached.AppliesTo(settings, notAfter.AddSeconds(1), after), "after the last moment");
        Assert.True(cached.AppliesTo(settings, DateTime.UtcNow, before + lifetime - 1), "young");
        Assert.False(cached.AppliesTo(settings, DateTime.UtcNow, after + lifetime), "old");
    }

    [Theory]
    [InlineData(X509RevocationMode.NoCheck, true)]
    [InlineData(X509RevocationMode.Offline, false)]
    [InlineData(X509RevocationMode.Online, false)]
    public void The_systems_trust_is_relied_on_where_revocation_is_not_asked_for(X509RevocationMode mode, bool expected)
    {
        HandshakeSettings settings = Settings(policy: null) with { RevocationMode = mode };
        using X509Chain chain = new() { ChainPolicy = Certificates.Trust() };
        Assert.True(chain.Build(Certificates.Ecdsa));

        CachedValidationResult? cached = CachedValidationResult.TryCreate(settings, chain);

        Assert.Equal(expected, cached is not null);
        Assert.Equal(expected, cached is not null && Accepts(cached, settings));
    }

    [Fact]
    public void Nothing_is_cached_without_resumption() =>
        Assert.Null(Validated(Settings() with { Resumes = false }).CachedResult);

    /// <summary>A callback may accept errors. That result applies to it alone.</summary>
    [Fact]
    public void Errors_that_a_callback_accepts_are_not_cached()
    {
        PeerVerifier verifier = new(this, Settings() with { ValidationCallback = (_, _, _, _) => true }, () => { });

        verifier.ValidateResumed([Certificates.WithoutKey(Certificates.SelfSigned)], cached: null);

        Assert.Null(verifier.Refusal);
        Assert.Null(verifier.CachedResult);
    }

    /// <summary>The switch is read once per process; a second copy of the library reads it again.</summary>
    [Fact]
    public void The_switch_is_read_by_its_name()
    {
        Assert.False(Settings().Revalidates);
        AppContext.SetSwitch(Switch, true);
        try
        {
            AssemblyLoadContext copy = new(nameof(The_switch_is_read_by_its_name), isCollectible: true);
            object? read = copy.LoadFromAssemblyPath(typeof(KtlsStream).Assembly.Location)
                .GetType(typeof(Resumption).FullName!)!.GetProperty(nameof(Resumption.Revalidates))!.GetValue(null);
            copy.Unload();

            Assert.Equal(true, read);
        }
        finally
        {
            AppContext.SetSwitch(Switch, false);
        }
    }

    private static X509ChainPolicy Policy(X509Certificate2 root)
    {
        X509ChainPolicy policy = Certificates.Trust();
        policy.CustomTrustStore[0] = root;
        return policy;
    }

    /// <summary>Creates the settings as <see cref="KtlsStream"/> does: with a copy of the policy.</summary>
    private static HandshakeSettings Settings(X509ChainPolicy? policy)
    {
        KtlsFallbackReason reason = ClientHandshakeOptions.TryCreate(
            new SslClientAuthenticationOptions { TargetHost = "localhost", CertificateChainPolicy = policy },
            default,
            KernelRequest.Nothing(KtlsFallbackReason.DisabledByMode),
            out HandshakeSettings? settings);
        Assert.Equal(KtlsFallbackReason.None, reason);
        return settings!;
    }

    private static HandshakeSettings Settings() => Settings(Certificates.Trust());

    private static CachedValidationResult Validate(HandshakeSettings settings) => Assert.IsType<CachedValidationResult>(Validated(settings).CachedResult);

    private static PeerVerifier Validated(HandshakeSettings settings)
    {
        PeerVerifier verifier = new(new object(), settings, () => { });
        verifier.ValidateResumed([Certificates.WithoutKey(Certificates.Ecdsa)], cached: null);
        Assert.Null(verifier.Refusal);
        return verifier;
    }

    private static bool Accepts(CachedValidationResult cached, HandshakeSettings settings)
    {
        PeerVerifier verifier = new(new object(), settings, () => { });
        verifier.ValidateResumed([Certificates.WithoutKey(Certificates.SelfSigned)], cached);
        return verifier.Refusal is null;
    }

    private static DateTime Latest(DateTime left, DateTime right) => (left > right ? left : right).ToUniversalTime();

    private static DateTime Earliest(DateTime left, DateTime right) => (left < right ? left : right).ToUniversalTime();
}

using System.Net.Security;
using System.Security.Authentication;
using System.Security.Cryptography;
using System.Security.Cryptography.X509Certificates;
using KernelTls.Tests;

namespace KernelTls.ConformanceTests;

/// <summary>
/// Tests the options that define trust: chain policy, revocation mode, and trust lists in certificate contexts.
/// </summary>
[Trait("loop", "outer-kernel")]
public class ChainPolicyTests
{
    private const SslPolicyErrors ChainErrors = SslPolicyErrors.RemoteCertificateChainErrors;

    /// <summary>Policies with the server's certificate, the requested host, and the expected errors.</summary>
    private static readonly Dictionary<string, (Action<X509ChainPolicy> Policy, string Kind, string Host, SslPolicyErrors Errors)> s_policies = new()
    {
        ["custom root"] = (_ => { }, "good", "localhost", SslPolicyErrors.None),
        ["other custom root"] = (p => p.CustomTrustStore.Add(Certificates.OtherAuthority), "untrusted", "localhost", SslPolicyErrors.None),
        ["no custom root"] = (p => p.CustomTrustStore.Clear(), "good", "localhost", ChainErrors),
        ["system's roots"] = (
            p =>
            {
                p.TrustMode = X509ChainTrustMode.System;
                p.CustomTrustStore.Clear();
            },
            "good", "localhost", ChainErrors),
        ["missing intermediate"] = (_ => { }, "leaf alone", "localhost", ChainErrors),
        ["intermediate in ExtraStore"] = (p => p.ExtraStore.Add(Certificates.Intermediate), "leaf alone", "localhost", SslPolicyErrors.None),
        ["ignore the name"] = (p => p.VerificationFlags = X509VerificationFlags.IgnoreInvalidName, "good", "elsewhere.test", SslPolicyErrors.None),
        ["ignore the name, none given"] = (p => p.VerificationFlags = X509VerificationFlags.IgnoreInvalidName, "good", "", SslPolicyErrors.None),
        ["ignore the time"] = (p => p.VerificationFlags = X509VerificationFlags.IgnoreNotTimeValid, "expired", "localhost", SslPolicyErrors.None),
        ["ignore the usage"] = (p => p.VerificationFlags = X509VerificationFlags.IgnoreWrongUsage, "for clients only", "localhost", SslPolicyErrors.None),
        ["any root"] = (p => p.VerificationFlags = X509VerificationFlags.AllowUnknownCertificateAuthority, "untrusted", "localhost", SslPolicyErrors.None),
        ["ignore everything"] = (p => p.VerificationFlags = X509VerificationFlags.AllFlags, "expired", "elsewhere.test", SslPolicyErrors.None),
        ["time of the past"] = (
            p =>
            {
                p.VerificationTimeIgnored = false;
                p.VerificationTime = DateTime.Now.AddDays(-10);
            },
            "expired", "localhost", SslPolicyErrors.None),
        ["own application policy, met"] = (
            p => p.ApplicationPolicy.Add(new Oid("1.3.6.1.5.5.7.3.2")), "for clients only", "localhost", SslPolicyErrors.None),
        ["own application policy, not met"] = (
            p => p.ApplicationPolicy.Add(new Oid("1.3.6.1.5.5.7.3.3")), "good", "localhost", ChainErrors),
        ["online revocation"] = (p => p.RevocationMode = X509RevocationMode.Online, "good", "localhost", ChainErrors),
        ["offline revocation"] = (p => p.RevocationMode = X509RevocationMode.Offline, "good", "localhost", ChainErrors),
        ["revocation of the leaf only"] = (
            p => (p.RevocationMode, p.RevocationFlag) = (X509RevocationMode.Offline, X509RevocationFlag.EndCertificateOnly),
            "chained", "localhost", ChainErrors),
        ["unknown revocation ignored"] = (
            p => (p.RevocationMode, p.VerificationFlags) = (X509RevocationMode.Offline, X509VerificationFlags.IgnoreEndRevocationUnknown),
            "good", "localhost", SslPolicyErrors.None),
    };

    public static TheoryData<TlsMode, SslProtocols> All => Modes.All;

    public static TheoryData<TlsMode, SslProtocols, string> Policies => Modes.AllWith<string>(s_policies.Keys);

    public static TheoryData<TlsMode, SslProtocols, X509RevocationMode> RevocationModes =>
        Modes.AllWith(X509RevocationMode.NoCheck, X509RevocationMode.Online, X509RevocationMode.Offline);

    [Theory]
    [MemberData(nameof(Policies))]
    public async Task A_policy_decides_as_on_SslStream_and_is_not_changed(TlsMode mode, SslProtocols version, string what)
    {
        (Action<X509ChainPolicy> change, string kind, string host, SslPolicyErrors errors) = s_policies[what];
        async Task<string> CallAsync(TlsMode each)
        {
            X509ChainPolicy policy = Certificates.Trust();
            change(policy);
            string before = Describe(policy);
            Calls calls = new();
            await using Meeting meeting = await new Meeting(each, TlsMode.Stock, version)
            {
                ClientOptions = c =>
                {
                    c.TargetHost = host;
                    c.CertificateChainPolicy = policy;
                    c.RemoteCertificateValidationCallback = (_, certificate, chain, found) =>
                    {
                        calls.Add(certificate, chain, chain!.ChainPolicy.ApplicationPolicy.Count, chain.ChainPolicy.VerificationFlags, found);
                        return true;
                    };
                },
                ServerOptions = s => s.ServerCertificateContext = ContextOf(kind),
            }.SucceedAsync();
            Assert.Equal(before, Describe(policy));
            return Assert.Single(calls.List);
        }

        string actual = await SideBySide.RunAsync(mode, CallAsync);
        Assert.EndsWith($" | {errors}", actual, StringComparison.Ordinal);
    }

    [Theory]
    [MemberData(nameof(Policies))]
    public async Task A_policy_decides_without_a_callback(TlsMode mode, SslProtocols version, string what)
    {
        (Action<X509ChainPolicy> change, string kind, string host, SslPolicyErrors errors) = s_policies[what];
        async Task<string> EndAsync(TlsMode each)
        {
            await using Meeting meeting = await new Meeting(each, TlsMode.Stock, version)
            {
                ClientOptions = c =>
                {
                    c.TargetHost = host;
                    change(c.CertificateChainPolicy!);
                },
                ServerOptions = s => s.ServerCertificateContext = ContextOf(kind),
            }.RunAsync();
            meeting.ClientEnding.AssertAccepted(errors == SslPolicyErrors.None);
            return $"{meeting.ClientEnding}";
        }

        string actual = await SideBySide.RunAsync(mode, EndAsync);
        Assert.Equal(errors == SslPolicyErrors.None, actual == "good");
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task A_policy_that_contradicts_itself_fails_the_handshake(TlsMode mode, SslProtocols version)
    {
        foreach (bool withCallback in new[] { false, true })
        {
            async Task<string> EndAsync(TlsMode each)
            {
                await using Meeting meeting = await new Meeting(each, TlsMode.Stock, version)
                {
                    ClientOptions = c => c.CertificateChainPolicy!.TrustMode = X509ChainTrustMode.System,
                    ClientValidation = withCallback ? (_, _, _, _) => true : null,
                }.RunAsync();

                Assert.NotEmpty(Certificates.Trust().CustomTrustStore);
                Assert.False(meeting.ServerEnding.IsGood);
                Exception failure = meeting.ClientEnding.Handshake!;
                Assert.IsType<CryptographicException>(failure.InnerException ?? failure, exactMatch: false);
                return failure.GetType().Name;
            }

            Assert.NotEqual("", await SideBySide.RunAsync(mode, EndAsync));
        }
    }

    [Theory]
    [MemberData(nameof(RevocationModes))]
    public async Task The_revocation_mode_counts_where_no_policy_is_given(TlsMode mode, SslProtocols version, X509RevocationMode revocation)
    {
        foreach (bool atServer in new[] { false, true })
        {
            foreach (bool withPolicy in new[] { false, true })
            {
                async Task<string> CallAsync(TlsMode each)
                {
                    Calls calls = new();
                    RemoteCertificateValidationCallback call = (_, certificate, chain, found) =>
                    {
                        calls.Add(certificate, chain, chain!.ChainPolicy.RevocationMode, chain.ChainPolicy.RevocationFlag, found);
                        return true;
                    };
                    await using Meeting meeting = await new Meeting(atServer ? TlsMode.Stock : each, atServer ? each : TlsMode.Stock, version)
                    {
                        ClientOptions = c =>
                        {
                            c.ClientCertificateContext = Certificates.ClientContext;
                            c.CertificateRevocationCheckMode = revocation;
                            c.CertificateChainPolicy = withPolicy ? c.CertificateChainPolicy : null;
                        },
                        ClientValidation = atServer ? (_, _, _, _) => true : call,
                        ServerOptions = s =>
                        {
                            s.ClientCertificateRequired = true;
                            s.CertificateRevocationCheckMode = revocation;
                            s.CertificateChainPolicy = withPolicy ? s.CertificateChainPolicy : null;
                        },
                        ServerValidation = atServer ? call : (_, _, _, _) => true,
                    }.SucceedAsync();
                    SslStream stream = atServer ? meeting.Server : meeting.Client;
                    Assert.Equal(revocation != X509RevocationMode.NoCheck, stream.CheckCertRevocationStatus);
                    return Assert.Single(calls.List);
                }

                string actual = await SideBySide.RunAsync(mode, CallAsync);
                Assert.EndsWith(
                    withPolicy ? "NoCheck | ExcludeRoot | None" : $"{revocation} | ExcludeRoot | {ChainErrors}", actual, StringComparison.Ordinal);
            }
        }
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task The_trust_list_of_a_server_s_certificate_decides_about_clients(TlsMode mode, SslProtocols version)
    {
        foreach ((bool announced, bool withPolicy, string kind, bool accepted) in new[]
        {
            (false, false, "other client", true), (true, false, "other client", true),
            (false, false, "second client", false), (true, false, "second client", false),
            (false, true, "other client", false), (false, true, "second client", true),
        })
        {
            await using Meeting meeting = await new Meeting(TlsMode.Stock, mode, version)
            {
                ClientOptions = c => c.ClientCertificateContext = Certificates.KindContext(kind),
                ServerOptions = s =>
                {
                    s.ClientCertificateRequired = true;
                    s.ServerCertificateContext = Trusting(Certificates.Ecdsa, announced);
                    s.CertificateChainPolicy = withPolicy ? s.CertificateChainPolicy : null;
                },
            }.RunAsync();

            meeting.ServerEnding.AssertAccepted(accepted);
            Assert.Equal(accepted, meeting.ClientEnding.IsGood);
        }
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task The_trust_list_of_a_client_s_certificate_decides_about_servers(TlsMode mode, SslProtocols version)
    {
        foreach ((bool withPolicy, string kind, bool accepted) in new[]
        {
            (false, "untrusted", true), (false, "good", false), (true, "untrusted", false), (true, "good", true),
        })
        {
            await using Meeting meeting = await new Meeting(mode, TlsMode.Stock, version)
            {
                ClientOptions = c =>
                {
                    c.ClientCertificateContext = Trusting(Certificates.Client, announced: false);
                    c.CertificateChainPolicy = withPolicy ? c.CertificateChainPolicy : null;
                },
                ServerOptions = s => s.ServerCertificateContext = Certificates.KindContext(kind),
            }.RunAsync();

            meeting.ClientEnding.AssertAccepted(accepted);
        }
    }

    private static SslStreamCertificateContext Trusting(X509Certificate2 certificate, bool announced) =>
        SslStreamCertificateContext.Create(
            certificate,
            null,
            offline: true,
            SslCertificateTrust.CreateForX509Collection([Certificates.OtherAuthority], sendTrustInHandshake: announced));

    private static SslStreamCertificateContext ContextOf(string kind) =>
        kind == "leaf alone" ? Certificates.Context(Certificates.Kind("chained")) : Certificates.KindContext(kind);

    private static string Describe(X509ChainPolicy policy) =>
        $"{policy.ApplicationPolicy.Count} {policy.CertificatePolicy.Count} {policy.ExtraStore.Count} {policy.CustomTrustStore.Count} "
        + $"{policy.TrustMode} {policy.RevocationMode} {policy.RevocationFlag} {policy.VerificationFlags}";
}

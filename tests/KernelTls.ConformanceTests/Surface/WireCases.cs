using System.Net.Security;
using System.Security.Authentication;
using System.Security.Cryptography.X509Certificates;
using KernelTls.Tests;

namespace KernelTls.ConformanceTests;

#pragma warning disable CA1416 // Linux
#pragma warning disable SYSLIB0040 // Encryption policies that permit no encryption are options, too.

/// <summary>Lists the configurations whose messages are compared. The name of each begins with an option.</summary>
internal static class WireCases
{
    private const SslProtocols Both = SslProtocols.Tls12 | SslProtocols.Tls13;

    private static readonly SslProtocols[] s_each = [SslProtocols.Tls12, SslProtocols.Tls13];

    private static readonly CipherSuitesPolicy s_suites = new(
    [
        TlsCipherSuite.TLS_CHACHA20_POLY1305_SHA256, TlsCipherSuite.TLS_AES_128_GCM_SHA256,
        TlsCipherSuite.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
    ]);

    private static readonly Lazy<SslStreamCertificateContext> s_announcing = new(() => SslStreamCertificateContext.Create(
        Certificates.Ecdsa,
        null,
        offline: true,
        SslCertificateTrust.CreateForX509Collection([Certificates.Authority, Certificates.Intermediate], sendTrustInHandshake: true)));

    private static readonly Lazy<WireCase[]> s_all = new(() => [.. Clients(), .. Servers()]);

    public static IReadOnlyList<WireCase> All => s_all.Value;

    private static IEnumerable<WireCase> Clients()
    {
        foreach (SslProtocols version in new[] { SslProtocols.None, SslProtocols.Tls12, SslProtocols.Tls13, Both })
        {
            yield return new("EnabledSslProtocols", false, version);
        }

        foreach (SslProtocols version in s_each)
        {
            yield return new("AllowTlsResume, two connections", false, version) { Client = c => c.AllowTlsResume = true, Connections = 2 };
            foreach ((string name, Action<SslClientAuthenticationOptions> change) in s_judgements)
            {
                yield return new(name, false, version)
                {
                    Client = c =>
                    {
                        c.RemoteCertificateValidationCallback = null;
                        c.TargetHost = "localhost";
                        change(c);
                    },
                };
            }

            foreach ((string name, Action<SslClientAuthenticationOptions> change) in s_certificates)
            {
                foreach (bool asks in new[] { false, true })
                {
                    yield return new($"{name}, {(asks ? "requested" : "not requested")}", false, version)
                    {
                        Client = change,
                        Peer = p => p with { AsksForCertificate = asks },
                    };
                }
            }
        }

        foreach ((string name, Action<SslClientAuthenticationOptions> change) in s_offers)
        {
            yield return new(name, false, Both)
            {
                Client = change,
                Fallback = name.Contains("falls back", StringComparison.Ordinal) ? KtlsFallbackReason.EncryptionPolicy : KtlsFallbackReason.None,
            };
        }

        yield return new("ApplicationProtocols, agreed", false, Both)
        {
            Client = c => c.ApplicationProtocols = [SslApplicationProtocol.Http2, SslApplicationProtocol.Http11],
            Peer = p => p with { Protocols = ["h2"] },
        };
        yield return new("EnabledSslProtocols, not the peer's", false, SslProtocols.Tls13) { Peer = p => p with { MaxVersion = 0x303 } };
        yield return new("EnabledSslProtocols, not the peer's", false, SslProtocols.Tls12) { Peer = p => p with { MinVersion = 0x304 } };
        yield return new("EnabledSslProtocols, HelloRetryRequest", false, SslProtocols.Tls13) { Peer = p => p with { Groups = "P-521" } };
        yield return new("EnabledSslProtocols, RSA", false, Both) { Peer = p => p with { Certificate = Certificates.Rsa } };
        yield return new("EnabledSslProtocols, disposed without a shutdown", false, Both) { OnlyDisposes = true };
    }

    private static readonly (string Name, Action<SslClientAuthenticationOptions> Change)[] s_judgements =
    [
        ("RemoteCertificateValidationCallback, refuses (refused)", c => c.RemoteCertificateValidationCallback = (_, _, _, _) => false),
        ("RemoteCertificateValidationCallback, throws (refused)",
            c => c.RemoteCertificateValidationCallback = (_, _, _, _) => throw new InvalidOperationException("on purpose")),
        ("CertificateChainPolicy", static _ => { }),
        ("CertificateChainPolicy, another authority (refused)", c => c.CertificateChainPolicy!.CustomTrustStore.Clear()),
        ("CertificateChainPolicy, revocation unknown (refused)", c => c.CertificateChainPolicy!.RevocationMode = X509RevocationMode.Offline),
        ("CertificateChainPolicy, another usage (refused)", c => c.CertificateChainPolicy!.ApplicationPolicy.Add(new("1.3.6.1.5.5.7.3.3"))),
        ("CertificateChainPolicy, in the past (refused)", c =>
        {
            c.CertificateChainPolicy!.VerificationTimeIgnored = false;
            c.CertificateChainPolicy.VerificationTime = DateTime.Now.AddYears(-1);
        }),
        ("TargetHost, another (refused)", c => c.TargetHost = "elsewhere.test"),
    ];

    private static readonly (string Name, Action<SslClientAuthenticationOptions> Change)[] s_certificates =
    [
        ("ClientCertificateContext", c => c.ClientCertificateContext = Certificates.ClientContext),
        ("ClientCertificateContext, chained", c => c.ClientCertificateContext = Certificates.KindContext("chained client")),
        ("ClientCertificates", c => c.ClientCertificates = [Certificates.Kind("RSA client")]),
        ("ClientCertificates, empty", c => c.ClientCertificates = []),
        ("LocalCertificateSelectionCallback, at once", c => c.LocalCertificateSelectionCallback = (_, _, _, _, _) => Certificates.Client),
        ("LocalCertificateSelectionCallback, when the server is known",
            c => c.LocalCertificateSelectionCallback = (_, _, _, server, _) => server is null ? null! : Certificates.Client),
        ("LocalCertificateSelectionCallback, none", c => c.LocalCertificateSelectionCallback = (_, _, _, _, _) => null!),
    ];

    private static readonly (string Name, Action<SslClientAuthenticationOptions> Change)[] s_offers =
    [
        ("AllowRenegotiation, off", c => c.AllowRenegotiation = false),
        ("AllowRsaPkcs1Padding, off", c => c.AllowRsaPkcs1Padding = false),
        ("AllowRsaPssPadding, off", c => c.AllowRsaPssPadding = false),
        ("AllowTlsResume, off", c => c.AllowTlsResume = false),
        ("AllowTlsResume, a first connection", c => c.AllowTlsResume = true),
        ("AllowTlsResume, certificate", c => (c.AllowTlsResume, c.ClientCertificateContext) = (true, Certificates.ClientContext)),
        ("ApplicationProtocols", c => c.ApplicationProtocols = [SslApplicationProtocol.Http2, SslApplicationProtocol.Http11]),
        ("ApplicationProtocols, empty", c => c.ApplicationProtocols = []),
        ("CertificateRevocationCheckMode, Online", c => c.CertificateRevocationCheckMode = X509RevocationMode.Online),
        ("CertificateRevocationCheckMode, Online without a policy",
            c => (c.CertificateChainPolicy, c.CertificateRevocationCheckMode) = (null, X509RevocationMode.Online)),
        ("CertificateRevocationCheckMode, Offline without a policy",
            c => (c.CertificateChainPolicy, c.CertificateRevocationCheckMode) = (null, X509RevocationMode.Offline)),
        ("CertificateChainPolicy, none", c => c.CertificateChainPolicy = null),
        ("CertificateChainPolicy, online revocation", c => c.CertificateChainPolicy!.RevocationMode = X509RevocationMode.Online),
        ("CipherSuitesPolicy", c => c.CipherSuitesPolicy = s_suites),
        ("CipherSuitesPolicy, resumes", c => (c.CipherSuitesPolicy, c.AllowTlsResume) = (s_suites, true)),
        ("EncryptionPolicy, falls back", c => c.EncryptionPolicy = EncryptionPolicy.AllowNoEncryption),
        ("TargetHost, none", c => c.TargetHost = null),
        ("TargetHost, empty", c => c.TargetHost = ""),
        ("TargetHost, an address", c => c.TargetHost = "127.0.0.1"),
        ("TargetHost, an IPv6 address", c => c.TargetHost = "::1"),
        ("TargetHost, with a dot", c => c.TargetHost = "name.test."),
        ("TargetHost, with an underscore", c => c.TargetHost = "a_name.test"),
        ("TargetHost, upper case", c => c.TargetHost = "NAME.test"),
        ("TargetHost, international", c => c.TargetHost = "b\u00fccher.test"),
    ];

    private static IEnumerable<WireCase> Servers()
    {
        yield return new("EnabledSslProtocols", true, SslProtocols.None);
        yield return new("EnabledSslProtocols", true, Both);
        foreach (SslProtocols version in s_each)
        {
            yield return new("EnabledSslProtocols", true, version);
            yield return new("EnabledSslProtocols, not the peer's", true, version)
            {
                Peer = p => version == SslProtocols.Tls12 ? p with { MinVersion = 0x304 } : p with { MaxVersion = 0x303 },
            };
            yield return new("AllowTlsResume, two connections", true, version) { Connections = 2 };
            yield return new("AllowTlsResume, off, two connections", true, version) { Server = s => s.AllowTlsResume = false, Connections = 2 };
            foreach ((string name, bool? judges, Action<SslServerAuthenticationOptions> change) in s_requests)
            {
                foreach (string kind in new[] { "", "good", "expired client", "other client" })
                {
                    bool refuses = judges is { } accepts ? !accepts : kind != "good";
                    yield return new($"{name}, certificate: {(kind == "" ? "none" : kind)}{(refuses ? " (refused)" : "")}", true, version)
                    {
                        Server = s =>
                        {
                            s.ClientCertificateRequired = true;
                            change(s);
                        },
                        Peer = p => p with { Certificate = kind == "" ? null : Certificates.Kind(kind) },
                        Connections = kind == "good" ? 2 : 1,
                    };
                }
            }

            foreach ((string name, Action<SslServerAuthenticationOptions> change) in s_answers)
            {
                yield return new(name, true, version)
                {
                    Server = change,
                    Peer = p => p with { Protocols = ["http/1.1"], AsksForStatus = true },
                };
            }

            yield return new("ServerCertificateContext, options callback", true, version)
            {
                ServerHandshake = (s, o) => s.HandshakeAsServerAsync((_, _, _, _) => ValueTask.FromResult(o), null),
            };
            yield return new("ServerCertificateContext, options callback that throws", true, version)
            {
                ServerHandshake = (s, _) => s.HandshakeAsServerAsync((_, _, _, _) => throw new InvalidOperationException("on purpose"), null),
            };
            yield return new("ServerCertificateContext, disposed without a shutdown", true, version) { OnlyDisposes = true };
            yield return new("EnabledSslProtocols, P-384", true, version) { Peer = p => p with { Groups = "P-384" } };
            yield return new("EnabledSslProtocols, two groups of which the second is known", true, version) { Peer = p => p with { Groups = "X448:P-256" } };
        }

        yield return new("AllowRenegotiation, falls back", true, Both) { Server = s => s.AllowRenegotiation = true, Fallback = KtlsFallbackReason.Renegotiation };
        yield return new("EncryptionPolicy, falls back", true, Both)
        {
            Server = s => s.EncryptionPolicy = EncryptionPolicy.AllowNoEncryption,
            Fallback = KtlsFallbackReason.EncryptionPolicy,
        };
        yield return new("CipherSuitesPolicy, not the peer's", true, SslProtocols.Tls12)
        {
            Server = s => s.CipherSuitesPolicy = s_suites,
            Peer = p => p with { CipherList = "ECDHE-ECDSA-AES256-GCM-SHA384" },
        };
    }

    private static readonly (string Name, bool? Accepts, Action<SslServerAuthenticationOptions> Change)[] s_requests =
    [
        ("ClientCertificateRequired", null, static _ => { }),
        ("RemoteCertificateValidationCallback, accepts", true, s => s.RemoteCertificateValidationCallback = (_, _, _, _) => true),
        ("RemoteCertificateValidationCallback, refuses", false, s => s.RemoteCertificateValidationCallback = (_, _, _, _) => false),
        ("CertificateChainPolicy, none", true, s =>
        {
            s.CertificateChainPolicy = null;
            s.RemoteCertificateValidationCallback = (_, _, _, _) => true;
        }),
        ("CertificateRevocationCheckMode, Online", true, s =>
        {
            s.CertificateRevocationCheckMode = X509RevocationMode.Online;
            s.RemoteCertificateValidationCallback = (_, _, _, _) => true;
        }),
        ("AllowRsaPkcs1Padding, off", null, s => s.AllowRsaPkcs1Padding = false),
        ("AllowRsaPssPadding, off", null, s => s.AllowRsaPssPadding = false),
        ("ServerCertificateContext, announces authorities", null, s => s.ServerCertificateContext = s_announcing.Value),
    ];

    private static readonly (string Name, Action<SslServerAuthenticationOptions> Change)[] s_answers =
    [
        ("ServerCertificateContext, RSA", s => s.ServerCertificateContext = Certificates.RsaContext),
        ("ServerCertificateContext, chained", s => s.ServerCertificateContext = Certificates.ChainedContext),
        ("AllowRsaPkcs1Padding, off, RSA", s => (s.AllowRsaPkcs1Padding, s.ServerCertificateContext) = (false, Certificates.RsaContext)),
        ("AllowRsaPssPadding, off, RSA", s => (s.AllowRsaPssPadding, s.ServerCertificateContext) = (false, Certificates.RsaContext)),
        ("ApplicationProtocols, agreed", s => s.ApplicationProtocols = [SslApplicationProtocol.Http2, SslApplicationProtocol.Http11]),
        ("ApplicationProtocols, not the peer's", s => s.ApplicationProtocols = [SslApplicationProtocol.Http2]),
        ("CipherSuitesPolicy", s => s.CipherSuitesPolicy = s_suites),
        ("ServerCertificate", s => (s.ServerCertificateContext, s.ServerCertificate) = (null, Certificates.Ecdsa)),
        ("ServerCertificateSelectionCallback",
            s => (s.ServerCertificateContext, s.ServerCertificateSelectionCallback) = (null, (_, _) => Certificates.Ecdsa)),
        ("ServerCertificateSelectionCallback, none",
            s => (s.ServerCertificateContext, s.ServerCertificateSelectionCallback) = (null, (_, _) => null!)),
    ];
}

using System.Net.Security;
using System.Net.Sockets;
using System.Security.Authentication;
using KernelTls.Tests;

namespace KernelTls.ConformanceTests;

#pragma warning disable CA1416 // Linux
#pragma warning disable SYSLIB0040 // Encryption policies that permit no encryption are part of the contract.

/// <summary>
/// Tests what the options let both ends negotiate: versions, cipher suites, signatures, and encryption itself.
/// </summary>
public class NegotiationTests
{
    private const SslProtocols Both = SslProtocols.Tls12 | SslProtocols.Tls13;

    private static readonly Dictionary<string, TlsCipherSuite[]> s_suites = new()
    {
        ["TLS 1.2 only"] = [TlsCipherSuite.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256],
        ["TLS 1.3 only"] = [TlsCipherSuite.TLS_AES_256_GCM_SHA384],
        ["one of each"] = [TlsCipherSuite.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, TlsCipherSuite.TLS_CHACHA20_POLY1305_SHA256],
        ["order"] = [TlsCipherSuite.TLS_CHACHA20_POLY1305_SHA256, TlsCipherSuite.TLS_AES_128_GCM_SHA256, TlsCipherSuite.TLS_AES_256_GCM_SHA384],
        ["unknown"] = [(TlsCipherSuite)0xFAFA],
        ["unknown and known"] = [(TlsCipherSuite)0xFAFA, TlsCipherSuite.TLS_AES_128_GCM_SHA256, TlsCipherSuite.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256],
        ["outdated"] = [TlsCipherSuite.TLS_RSA_WITH_RC4_128_MD5],
        ["for RSA certificates"] = [TlsCipherSuite.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256],
        ["none"] = [],
    };

    public static TheoryData<TlsMode> EveryMode => [.. Modes.Every];

    public static TheoryData<TlsMode, SslProtocols> All => Modes.All;

    public static TheoryData<TlsMode, string> Suites => Modes.With<string>(s_suites.Keys);

    public static TheoryData<TlsMode, SslProtocols, EncryptionPolicy> Policies => Modes.AllWith(
        EncryptionPolicy.RequireEncryption, EncryptionPolicy.AllowNoEncryption, EncryptionPolicy.NoEncryption);

    public static TheoryData<TlsMode, SslProtocols, string> Paddings => Modes.AllWith("PSS", "PKCS #1", "none");

    public static TheoryData<TlsMode, SslProtocols> Protocols => Modes.With(
        SslProtocols.None, SslProtocols.Tls12, SslProtocols.Tls13, Both, SslProtocols.Tls11 | SslProtocols.Tls12, SslProtocols.Tls11, SslProtocols.Tls);

    [Theory]
    [MemberData(nameof(Suites))]
    public async Task Cipher_suites_are_limited_as_on_SslStream(TlsMode mode, string what)
    {
        foreach (SslProtocols version in new[] { Both, SslProtocols.Tls12, SslProtocols.Tls13, SslProtocols.None })
        {
            foreach (bool atServer in new[] { false, true })
            {
                async Task<string> AgreeAsync(TlsMode each)
                {
                    await using Meeting meeting = await new Meeting(atServer ? TlsMode.Stock : each, atServer ? each : TlsMode.Stock, version)
                    {
                        AllowedFallback = Usable(what, version) ? KtlsFallbackReason.None : KtlsFallbackReason.CipherSuitesPolicy,
                        ClientOptions = c => c.CipherSuitesPolicy = atServer ? null : new CipherSuitesPolicy(s_suites[what]),
                        ServerOptions = s => s.CipherSuitesPolicy = atServer ? new CipherSuitesPolicy(s_suites[what]) : null,
                    }.RunAsync();
                    SslStream stream = atServer ? meeting.Server : meeting.Client;
                    Ending ending = atServer ? meeting.ServerEnding : meeting.ClientEnding;
                    return ending.IsGood ? $"{stream.SslProtocol} {stream.NegotiatedCipherSuite}" : $"{ending}";
                }

                string actual = await SideBySide.RunAsync(mode, AgreeAsync, $"{version}, {(atServer ? "server" : "client")}");
                string? sure = (what, version) switch
                {
                    ("TLS 1.2 only", SslProtocols.Tls12 or SslProtocols.None) => "Tls12 TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
                    ("TLS 1.3 only", Both or SslProtocols.Tls13 or SslProtocols.None) => "Tls13 TLS_AES_256_GCM_SHA384",
                    ("TLS 1.2 only", Both) or ("unknown", _) or ("none", _) => "handshake: AuthenticationException",
                    ("unknown and known", SslProtocols.Tls12) => "Tls12 TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
                    ("unknown and known", SslProtocols.Tls13) => "Tls13 TLS_AES_128_GCM_SHA256",
                    _ => null,
                };
                Assert.Equal(sure ?? actual, actual);
            }
        }
    }

    /// <summary>
    /// Returns whether the policy contains a suite that every engine knows for an enabled version, so that there is no
    /// reason to leave the mode.
    /// </summary>
    private static bool Usable(string what, SslProtocols version) => what switch
    {
        "TLS 1.2 only" or "for RSA certificates" => version is SslProtocols.Tls12 or SslProtocols.None,
        "TLS 1.3 only" => version is not SslProtocols.Tls12,
        "order" => version is not SslProtocols.Tls12,
        "one of each" => true,
        _ => false,
    };

    [Theory]
    [MemberData(nameof(Paddings))]
    public async Task RSA_paddings_are_limited_as_on_SslStream(TlsMode mode, SslProtocols version, string allowed)
    {
        foreach (string kind in new[] { "RSA 2048", "ECDSA P-256" })
        {
            foreach ((bool atServer, bool mutual) in new[] { (false, false), (true, false), (false, true), (true, true) })
            {
                (bool pss, bool pkcs1) = (allowed == "PSS", allowed == "PKCS #1");
                async Task<string> AgreeAsync(TlsMode each)
                {
                    await using Meeting meeting = await new Meeting(atServer ? TlsMode.Stock : each, atServer ? each : TlsMode.Stock, version)
                    {
                        AllowedFallback = RsaPaddings.CanBeLimited ? KtlsFallbackReason.None : KtlsFallbackReason.OpenSslRefusedOptions,
                        ClientOptions = c =>
                        {
                            c.ClientCertificateContext = mutual ? Certificates.KindContext(kind == "RSA 2048" ? "RSA client" : "second client") : null;
                            (c.AllowRsaPssPadding, c.AllowRsaPkcs1Padding) = atServer ? (true, true) : (pss, pkcs1);
                        },
                        ServerOptions = s =>
                        {
                            s.ClientCertificateRequired = mutual;
                            s.ServerCertificateContext = Certificates.KindContext(mutual ? "ECDSA P-256" : kind);
                            (s.AllowRsaPssPadding, s.AllowRsaPkcs1Padding) = atServer ? (pss, pkcs1) : (true, true);
                        },
                    }.RunAsync();
                    return $"{(atServer ? meeting.ServerEnding : meeting.ClientEnding)}";
                }

                string actual = await SideBySide.RunAsync(mode, AgreeAsync, $"{kind}, at server: {atServer}, mutual: {mutual}");
                if (!mutual)
                {
                    bool possible = RsaPaddings.CanBeLimited && (kind != "RSA 2048" || pss || version == SslProtocols.Tls12);
                    Assert.Equal(possible, actual == "good");
                }
            }
        }
    }

    [Theory]
    [MemberData(nameof(Policies))]
    public async Task An_encryption_policy_decides_as_on_SslStream(TlsMode mode, SslProtocols version, EncryptionPolicy policy)
    {
        foreach (bool atServer in new[] { false, true })
        {
            async Task<string> AgreeAsync(TlsMode each)
            {
                await using Meeting meeting = await new Meeting(atServer ? TlsMode.Stock : each, atServer ? each : TlsMode.Stock, version)
                {
                    AllowedFallback = policy == EncryptionPolicy.RequireEncryption ? KtlsFallbackReason.None : KtlsFallbackReason.EncryptionPolicy,
                    ClientOptions = c => c.EncryptionPolicy = atServer ? EncryptionPolicy.RequireEncryption : policy,
                    ServerOptions = s => s.EncryptionPolicy = atServer ? policy : EncryptionPolicy.RequireEncryption,
                }.RunAsync();
                SslStream stream = atServer ? meeting.Server : meeting.Client;
                Ending ending = atServer ? meeting.ServerEnding : meeting.ClientEnding;
                return ending.IsGood ? $"{stream.SslProtocol} {stream.IsEncrypted}" : $"{ending}";
            }

            string actual = await SideBySide.RunAsync(mode, AgreeAsync);
            Assert.Equal(policy != EncryptionPolicy.NoEncryption, actual == $"{version} True");
        }
    }

    [Theory]
    [MemberData(nameof(EveryMode))]
    public async Task An_encryption_policy_that_does_not_exist_is_refused_by_the_constructor(TlsMode mode)
    {
        using SocketPair sockets = await SocketPair.ConnectAsync();
        using NetworkStream inner = new(sockets.Client);

        Assert.Throws<ArgumentException>("encryptionPolicy", () => Modes.Create(mode, inner, policy: (EncryptionPolicy)9));
    }

    /// <summary>The constructor's policy applies to the overloads without options. Options have their own.</summary>
    [Theory]
    [MemberData(nameof(All))]
    public async Task The_options_encryption_policy_goes_before_the_constructor_s(TlsMode mode, SslProtocols version)
    {
        await using Meeting meeting = await new Meeting(mode, mode, version)
        {
            Policy = EncryptionPolicy.NoEncryption,
        }.SucceedAsync();

        Assert.True(meeting.Client.IsEncrypted);
        Assert.Equal(version, meeting.Server.SslProtocol);
    }

    [Theory]
    [MemberData(nameof(Protocols))]
    public async Task Versions_are_limited_as_on_SslStream(TlsMode mode, SslProtocols enabled)
    {
        foreach (bool atServer in new[] { false, true })
        {
            async Task<string> AgreeAsync(TlsMode each)
            {
                await using Meeting meeting = await new Meeting(atServer ? TlsMode.Stock : each, atServer ? each : TlsMode.Stock, SslProtocols.None)
                {
                    AllowedFallback = (enabled & ~Both) != 0 ? KtlsFallbackReason.ProtocolNotOffloadable : KtlsFallbackReason.None,
                    ClientOptions = c => c.EnabledSslProtocols = atServer ? SslProtocols.None : enabled,
                    ServerOptions = s => s.EnabledSslProtocols = atServer ? enabled : SslProtocols.None,
                }.RunAsync();
                Ending ending = atServer ? meeting.ServerEnding : meeting.ClientEnding;
                return ending.IsGood ? $"{meeting.Client.SslProtocol}" : $"{ending}";
            }

            string actual = await SideBySide.RunAsync(mode, AgreeAsync);
            Assert.Equal(enabled is not (SslProtocols.Tls or SslProtocols.Tls11), actual is "Tls12" or "Tls13");
        }
    }
}

using System.Globalization;
using System.Net.Security;
using System.Security.Authentication;
using System.Text;
using KernelTls.Handshake;
using KernelTls.Interop;
using KernelTls.Offload;

namespace KernelTls.UnitTests;

public class HandshakeOptionsTests
{
    [Theory]
    [InlineData(null, "")]
    [InlineData("", "")]
    [InlineData("example.test", "example.test")]
    [InlineData("Example.TEST", "Example.TEST")]
    [InlineData("example.test.", "example.test")]
    [InlineData("bücher.test", "xn--bcher-kva.test")]
    [InlineData("bücher.test.", "xn--bcher-kva.test")]
    [InlineData("127.0.0.1", "127.0.0.1")]
    [InlineData("::1", "::1")]
    [InlineData("under_score.test", "under_score.test")]
    public void A_host_is_spelt_as_certificates_spell_it(string? host, string expected) =>
        Assert.Equal(expected, HandshakeOptions.NormalizeHost(host));

    [Theory]
    [InlineData("")]
    [InlineData("localhost")]
    [InlineData("www.example-1.org")]
    [InlineData("www.example.org.")]
    [InlineData("a..b")]
    [InlineData("-a-.b-")]
    [InlineData("under_score.example")]
    [InlineData("WWW.Example.ORG")]
    [InlineData("xn--bcher-kva.example")]
    [InlineData("www.xn--bcher-kva.example")]
    [InlineData("xn--.example")]
    [InlineData("bücher.example")]
    [InlineData("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.example")]
    public void A_received_name_is_published_as_IDNA_reads_it(string name)
    {
        string expected;
        try
        {
            expected = new IdnMapping { UseStd3AsciiRules = false, AllowUnassigned = true }.GetUnicode(name);
        }
        catch (ArgumentException)
        {
            expected = name;
        }

        Assert.Equal(expected, HandshakeOptions.PublishedServerName(Encoding.UTF8.GetBytes(name)));
    }

    [Fact]
    public void A_name_that_IDNA_cannot_spell_stays_and_is_not_sent()
    {
        string host = new('ü', 300);

        Assert.Equal(host, HandshakeOptions.NormalizeHost(host));
        Assert.Null(HandshakeOptions.ServerNameOf(host));
    }

    [Theory]
    [InlineData("", null)]
    [InlineData("example.test", "example.test")]
    [InlineData("xn--bcher-kva.test", "xn--bcher-kva.test")]
    [InlineData("127.0.0.1", null)]
    [InlineData("::1", null)]
    [InlineData("[::1]", null)]
    [InlineData("fe80::1%2", null)]
    [InlineData("a\0b", null)]
    public void Server_names_are_DNS_names_only(string host, string? expected) =>
        Assert.Equal(expected, HandshakeOptions.ServerNameOf(host));

    [Fact]
    public void A_name_over_255_bytes_is_no_server_name() => Assert.Null(HandshakeOptions.ServerNameOf(new string('a', 256)));

    [Theory]
    [InlineData(SslProtocols.None, 0, 0)]
    [InlineData(SslProtocols.Tls12, 0x0303, 0x0303)]
    [InlineData(SslProtocols.Tls13, 0x0304, 0x0304)]
    [InlineData(SslProtocols.Tls12 | SslProtocols.Tls13, 0x0303, 0x0304)]
    public void Versions_become_a_range(SslProtocols protocols, int min, int max)
    {
        TlsContextKey key = Key(protocols: protocols);

        Assert.Equal((min, max), (key.MinVersion, key.MaxVersion));
    }

    [Theory]
#pragma warning disable SYSLIB0039, CS0618 // The old versions are under test.
    [InlineData(SslProtocols.Tls11)]
    [InlineData(SslProtocols.Tls | SslProtocols.Tls12)]
    [InlineData(SslProtocols.Tls11 | SslProtocols.Tls12 | SslProtocols.Tls13)]
    [InlineData(SslProtocols.Ssl3)]
    [InlineData(SslProtocols.Default)]
#pragma warning restore SYSLIB0039, CS0618
    public void Versions_below_1_2_stay_with_the_base_class(SslProtocols protocols)
    {
        Assert.Equal(KtlsFallbackReason.ProtocolNotOffloadable, TryKey(out TlsContextKey? key, protocols: protocols));
        Assert.Null(key);
    }

    [Fact]
    public void Application_protocols_are_encoded_as_on_the_wire() =>
        Assert.Equal("\u0002h2\u0008http/1.1", Key(alpn: [SslApplicationProtocol.Http2, SslApplicationProtocol.Http11]).Alpn);

    [Fact]
    public void Application_protocols_may_be_any_bytes()
    {
        byte[] bytes = [0, 0x7F, 0x80, 0xFF];

        string alpn = Key(alpn: [new SslApplicationProtocol(bytes)]).Alpn;

        Assert.Equal([4, .. bytes], Encoding.Latin1.GetBytes(alpn));
    }

    [Fact]
    public void No_application_protocols_are_an_empty_list()
    {
        Assert.Equal("", Key(alpn: null).Alpn);
        Assert.Equal("", Key(alpn: []).Alpn);
    }

    [Fact]
    public void The_default_application_protocol_is_refused() =>
        Assert.Throws<ArgumentException>(() => Key(alpn: [default]));

    [Fact]
    public void A_list_of_application_protocols_over_64_KiB_is_refused() =>
        Assert.Throws<ArgumentException>(() => Key(
            alpn: [.. Enumerable.Range(0, 257).Select(i => new SslApplicationProtocol($"{i:D255}"))]));

    [Fact]
    public void Equal_options_are_equal_keys()
    {
        Assert.Equal(
            Key(alpn: [SslApplicationProtocol.Http2], policy: [TlsCipherSuite.TLS_AES_128_GCM_SHA256]),
            Key(alpn: [SslApplicationProtocol.Http2], policy: [TlsCipherSuite.TLS_AES_128_GCM_SHA256]));
        Assert.NotEqual(Key(alpn: [SslApplicationProtocol.Http2]), Key(alpn: [SslApplicationProtocol.Http11]));
    }

    [Fact]
    public void Without_a_policy_the_suites_are_OpenSSL_s()
    {
        TlsContextKey key = Key();

        Assert.Null(key.CipherSuites);
        Assert.Null(key.CipherList);
    }

    [Fact]
    public void A_policy_keeps_its_order_and_splits_by_version()
    {
        TlsContextKey key = Key(policy: [
            TlsCipherSuite.TLS_CHACHA20_POLY1305_SHA256,
            TlsCipherSuite.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
            TlsCipherSuite.TLS_AES_128_CCM_SHA256,
            TlsCipherSuite.TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256]);

        Assert.Equal("TLS_CHACHA20_POLY1305_SHA256:TLS_AES_128_CCM_SHA256", key.CipherSuites);
        Assert.Equal("ECDHE-RSA-AES128-GCM-SHA256:ECDHE-ECDSA-AES128-SHA256", key.CipherList);
        Assert.Equal((0, 0), (key.MinVersion, key.MaxVersion));
    }

    [Fact]
    public void A_version_without_a_suite_is_not_offered()
    {
        TlsContextKey only13 = Key(policy: [TlsCipherSuite.TLS_AES_128_GCM_SHA256]);
        TlsContextKey only12 = Key(policy: [TlsCipherSuite.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256]);

        Assert.Equal((0x0304, 0), (only13.MinVersion, only13.MaxVersion));
        Assert.Equal((0, 0x0303), (only12.MinVersion, only12.MaxVersion));
        Assert.Null(only12.CipherSuites);
    }

    [Fact]
    public void A_policy_that_leaves_no_version_stays_with_the_base_class() =>
        Assert.Equal(
            KtlsFallbackReason.CipherSuitesPolicy,
            TryKey(out _, SslProtocols.Tls12, policy: [TlsCipherSuite.TLS_AES_128_GCM_SHA256]));

    [Fact]
    public void A_policy_without_a_suite_for_TLS_1_3_that_is_enabled_by_name_stays_with_the_base_class() =>
        Assert.Equal(
            KtlsFallbackReason.CipherSuitesPolicy,
            TryKey(
                out _,
                SslProtocols.Tls12 | SslProtocols.Tls13,
                policy: [TlsCipherSuite.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256]));

    [Fact]
    public void A_suite_that_OpenSSL_does_not_know_is_left_out_as_in_SslStream() =>
        Assert.Equal(
            "TLS_AES_128_GCM_SHA256",
            Key(policy: [TlsCipherSuite.TLS_AES_128_GCM_SHA256, TlsCipherSuite.TLS_KRB5_WITH_RC4_128_MD5]).CipherSuites);

    [Fact]
    public void Every_suite_that_the_kernel_can_take_over_is_one_that_OpenSSL_takes()
    {
        int made = 0;
        foreach (TlsCipherSuite suite in Enum.GetValues<TlsCipherSuite>().Where(s => CipherKinds.Of(s) != CipherKind.None))
        {
            // An OpenSSL without the suite omits it from the policy.
            if (TryKey(out TlsContextKey? key, policy: [suite], flags: ContextFlags.VerifyPeer) == KtlsFallbackReason.None)
            {
                made++;
                Assert.True(TlsContexts.TryGet(key!, out KtlsFallbackReason reason) is not null, $"{suite}: {reason}");
            }
        }

        Assert.InRange(made, 12, 100);
    }

    [Theory]
    [InlineData(true, true, null)]
    [InlineData(false, true, "rsa_pkcs1_sha256")]
    [InlineData(true, false, "rsa_pss_rsae_sha256")]
    public void A_padding_that_is_ruled_out_is_not_offered(bool pss, bool pkcs1, string? expected)
    {
        string? algorithms = HandshakeOptions.SignatureAlgorithmsFor(pss, pkcs1);

        if (expected is null)
        {
            Assert.Null(algorithms);
            return;
        }

        Assert.Contains(expected, algorithms!.Split(':'));
        Assert.Contains("ecdsa_secp256r1_sha256", algorithms.Split(':'));
        Assert.Equal(pss, algorithms.Contains("rsa_pss_", StringComparison.Ordinal));
        Assert.Equal(pkcs1, algorithms.Contains("rsa_pkcs1_", StringComparison.Ordinal));
        Assert.NotNull(TlsContexts.TryGet(Key(flags: ContextFlags.VerifyPeer) with { SignatureAlgorithms = algorithms }, out _));
    }

    private static TlsContextKey Key(
        SslProtocols protocols = SslProtocols.None,
        List<SslApplicationProtocol>? alpn = null,
        TlsCipherSuite[]? policy = null,
        ContextFlags flags = ContextFlags.None)
    {
        Assert.Equal(KtlsFallbackReason.None, TryKey(out TlsContextKey? key, protocols, alpn, policy, flags));
        return Assert.IsType<TlsContextKey>(key);
    }

    private static KtlsFallbackReason TryKey(
        out TlsContextKey? key,
        SslProtocols protocols = SslProtocols.None,
        List<SslApplicationProtocol>? alpn = null,
        TlsCipherSuite[]? policy = null,
        ContextFlags flags = ContextFlags.None) =>
#pragma warning disable CA1416 // Linux
        HandshakeOptions.TryCreateContextKey(
            false, flags, protocols, policy is null ? null : new CipherSuitesPolicy(policy), alpn, null, null, out key);
#pragma warning restore CA1416
}

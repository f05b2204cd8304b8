using System.Net.Security;
using System.Security.Authentication;
using KernelTls.Offload;

namespace KernelTls.UnitTests;

[Trait("system", "any")]
public class OffloadPlanTests
{
    private const int Enoent = 2;
    private const int Einval = 22;

    /// <summary>
    /// One line: OpenSSL, kernel, version, suite, requested, switched (s, r), closed (c), one direction requested (S,
    /// R) or short records (f) → the offload's text.
    /// </summary>
    [Theory]
    // All prerequisites are present.
    [InlineData("3.5", "all", SslProtocols.Tls13, TlsCipherSuite.TLS_AES_256_GCM_SHA384, true, "sr", "send=kernel receive=kernel")]
    [InlineData("3.2", "all", SslProtocols.Tls13, TlsCipherSuite.TLS_AES_128_CCM_SHA256, true, "sr", "send=kernel receive=kernel")]
    [InlineData("3.0", "all", SslProtocols.Tls12, TlsCipherSuite.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, true, "sr", "send=kernel receive=kernel")]
    // OpenSSL 3.0 does not receive TLS 1.3 in the kernel.
    [InlineData("3.0", "all", SslProtocols.Tls13, TlsCipherSuite.TLS_AES_256_GCM_SHA384, true, "s", "send=kernel receive=openssl (OpenSslTooOld)")]
    [InlineData("3.1", "all", SslProtocols.Tls13, TlsCipherSuite.TLS_AES_128_GCM_SHA256, true, "", "send=openssl (KernelRefused) receive=openssl (OpenSslTooOld)")]
    [InlineData("3.0", "all", SslProtocols.Tls13, TlsCipherSuite.TLS_AES_128_CCM_SHA256, true, "", "send=openssl (OpenSslTooOld) receive=openssl (OpenSslTooOld)")]
    [InlineData("3.0", "all", SslProtocols.Tls12, TlsCipherSuite.TLS_ECDHE_ECDSA_WITH_AES_128_CCM, true, "sr", "send=kernel receive=kernel")]
    // OpenSSL's report takes precedence over the expectation.
    [InlineData("3.0", "all", SslProtocols.Tls13, TlsCipherSuite.TLS_AES_256_GCM_SHA384, true, "sr", "send=kernel receive=kernel")]
    [InlineData("3.5", "nothing", SslProtocols.Tls13, TlsCipherSuite.TLS_AES_256_GCM_SHA384, true, "sr", "send=kernel receive=kernel")]
    // A socket that refused the keys.
    [InlineData("3.5", "all", SslProtocols.Tls13, TlsCipherSuite.TLS_AES_256_GCM_SHA384, true, "", "send=openssl (KernelRefused) receive=openssl (KernelRefused)")]
    [InlineData("3.5", "all", SslProtocols.Tls12, TlsCipherSuite.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, true, "s", "send=kernel receive=openssl (KernelRefused)")]
    // A peer that closed earlier.
    [InlineData("3.5", "all", SslProtocols.Tls13, TlsCipherSuite.TLS_AES_256_GCM_SHA384, true, "c", "send=openssl (PeerClosed) receive=openssl (PeerClosed)")]
    [InlineData("3.0", "all", SslProtocols.Tls13, TlsCipherSuite.TLS_AES_256_GCM_SHA384, true, "c", "send=openssl (PeerClosed) receive=openssl (OpenSslTooOld)")]
    [InlineData("3.5", "all", SslProtocols.Tls13, TlsCipherSuite.TLS_AES_256_GCM_SHA384, false, "c", "send=openssl (DisabledByMode) receive=openssl (DisabledByMode)")]
    [InlineData("3.5", "all", SslProtocols.Tls13, TlsCipherSuite.TLS_AES_256_GCM_SHA384, true, "src", "send=kernel receive=kernel")]
    // A direction that was not requested, and the reasons with precedence.
    [InlineData("3.5", "all", SslProtocols.Tls13, TlsCipherSuite.TLS_AES_256_GCM_SHA384, true, "sS", "send=kernel receive=openssl (DirectionNotRequested)")]
    [InlineData("3.5", "all", SslProtocols.Tls13, TlsCipherSuite.TLS_AES_256_GCM_SHA384, true, "rR", "send=openssl (DirectionNotRequested) receive=kernel")]
    [InlineData("3.5", "all", SslProtocols.Tls13, TlsCipherSuite.TLS_AES_256_GCM_SHA384, true, "S", "send=openssl (KernelRefused) receive=openssl (DirectionNotRequested)")]
    [InlineData("3.0", "nothing", SslProtocols.Tls13, TlsCipherSuite.TLS_AES_256_GCM_SHA384, true, "R", "send=openssl (DirectionNotRequested) receive=openssl (OpenSslTooOld)")]
    [InlineData("3.5", "all", SslProtocols.Tls13, TlsCipherSuite.TLS_AES_256_GCM_SHA384, false, "S", "send=openssl (DisabledByMode) receive=openssl (DisabledByMode)")]
    // Shorter records.
    [InlineData("3.5", "all", SslProtocols.Tls12, TlsCipherSuite.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, true, "f", "send=openssl (MaxFragmentLength) receive=openssl (MaxFragmentLength)")]
    [InlineData("3.5", "all", SslProtocols.Tls12, TlsCipherSuite.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, true, "rf", "send=openssl (MaxFragmentLength) receive=kernel")]
    // Ciphers that no kernel implements take precedence.
    [InlineData("3.0", "nothing", SslProtocols.Tls12, TlsCipherSuite.TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256, true, "", "send=openssl (CipherNotOffloadable) receive=openssl (CipherNotOffloadable)")]
    [InlineData("3.0", "all", SslProtocols.Tls13, TlsCipherSuite.TLS_AES_128_CCM_8_SHA256, true, "", "send=openssl (CipherNotOffloadable) receive=openssl (CipherNotOffloadable)")]
    // A kernel that lacks the cipher, the version or a direction.
    [InlineData("3.5", "5.4", SslProtocols.Tls13, TlsCipherSuite.TLS_CHACHA20_POLY1305_SHA256, true, "", "send=openssl (KernelTooOld) receive=openssl (KernelTooOld)")]
    [InlineData("3.5", "5.4", SslProtocols.Tls13, TlsCipherSuite.TLS_AES_256_GCM_SHA384, true, "sr", "send=kernel receive=kernel")]
    [InlineData("3.5", "4.13", SslProtocols.Tls12, TlsCipherSuite.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, true, "s", "send=kernel receive=openssl (KernelTooOld)")]
    [InlineData("3.5", "4.13", SslProtocols.Tls13, TlsCipherSuite.TLS_AES_128_GCM_SHA256, true, "", "send=openssl (KernelTooOld) receive=openssl (KernelTooOld)")]
    [InlineData("3.0", "4.13", SslProtocols.Tls13, TlsCipherSuite.TLS_AES_128_GCM_SHA256, true, "", "send=openssl (KernelTooOld) receive=openssl (OpenSslTooOld)")]
    // Unsupported versions.
    [InlineData("3.5", "all", SslProtocols.None, TlsCipherSuite.TLS_AES_128_GCM_SHA256, true, "", "send=openssl (ProtocolNotOffloadable) receive=openssl (ProtocolNotOffloadable)")]
    // The experiment without the kernel.
    [InlineData("3.5", "all", SslProtocols.Tls13, TlsCipherSuite.TLS_AES_256_GCM_SHA384, false, "", "send=openssl (DisabledByMode) receive=openssl (DisabledByMode)")]
    [InlineData("3.0", "nothing", SslProtocols.Tls12, TlsCipherSuite.TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256, false, "", "send=openssl (DisabledByMode) receive=openssl (DisabledByMode)")]
    public void The_plan_follows_from_the_facts(
        string openSsl, string kernel, SslProtocols protocol, TlsCipherSuite suite, bool wanted, string switched, string expected)
    {
        OffloadFacts facts = new(
            wanted ? KtlsFallbackReason.None : KtlsFallbackReason.DisabledByMode,
            Version.Parse(openSsl),
            Kernel(kernel),
            protocol,
            suite,
            switched.Contains('s'),
            switched.Contains('r'),
            switched.Contains('c'),
            switched.Contains('S') ? KtlsDirections.Send : switched.Contains('R') ? KtlsDirections.Receive : KtlsDirections.Both,
            switched.Contains('f'));

        Assert.Equal(expected, OffloadPlan.Decide(facts).ToString());
    }

    [Fact]
    public void A_reason_is_given_exactly_where_a_direction_is_not_in_the_kernel()
    {
        foreach (string openSsl in new[] { "3.0", "3.2", "3.5" })
        {
            foreach (string kernel in new[] { "all", "nothing", "4.13", "5.4" })
            {
                foreach (SslProtocols protocol in new[] { SslProtocols.Tls12, SslProtocols.Tls13 })
                {
                    foreach (TlsCipherSuite suite in Enum.GetValues<TlsCipherSuite>())
                    {
                        foreach (bool send in new[] { false, true })
                        {
                            foreach (bool receive in new[] { false, true })
                            {
                                KtlsOffload offload = OffloadPlan.Decide(
                                    new(KtlsFallbackReason.None, Version.Parse(openSsl), Kernel(kernel), protocol, suite, send, receive));
                                Assert.Equal(send, offload.SendFallbackReason == KtlsFallbackReason.None);
                                Assert.Equal(receive, offload.ReceiveFallbackReason == KtlsFallbackReason.None);
                                Assert.Equal(send && receive, offload.IsComplete);
                            }
                        }
                    }
                }
            }
        }
    }

    private static KernelCapabilities Kernel(string name)
    {
        // Rows: TLS 1.2, TLS 1.3. Columns: AES-128-GCM, AES-256-GCM, AES-128-CCM, ChaCha20-Poly1305.
        int[] all = new int[8];
        int[] none = [Enoent, Enoent, Enoent, Enoent, Enoent, Enoent, Enoent, Enoent];
        int[] firstOnly = [0, Einval, Einval, Einval, Einval, Einval, Einval, Einval];
        int[] withoutChaCha = [0, 0, 0, Einval, 0, 0, 0, Einval];
        return name switch
        {
            "all" => new KernelCapabilities(all, all, true, true),
            "nothing" => KernelCapabilities.Nothing,
            "4.13" => new KernelCapabilities(firstOnly, none, false, false),
            "5.4" => new KernelCapabilities(withoutChaCha, withoutChaCha, false, false),
            _ => throw new ArgumentOutOfRangeException(nameof(name), name, "No such kernel in this test."),
        };
    }
}

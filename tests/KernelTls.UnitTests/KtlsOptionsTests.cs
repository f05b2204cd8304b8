using System.Net.Security;
using System.Security.Cryptography.X509Certificates;
using KernelTls.Handshake;
using KernelTls.Interop;
using KernelTls.Offload;

namespace KernelTls.UnitTests;

[Trait("system", "any")]
public class KtlsOptionsTests
{
    [Fact]
    public void By_default_both_directions_are_asked_for_and_the_socket_is_left_alone()
    {
        KtlsOptions options = new();

        Assert.Equal(KtlsMode.Environment, options.Mode);
        Assert.Equal(KtlsDirections.Both, options.Directions);
        Assert.Equal(KtlsExpectNoPadding.Automatic, options.ExpectNoPadding);
    }

    [Theory]
    [InlineData(KtlsDirections.None)]
    [InlineData((KtlsDirections)4)]
    [InlineData(KtlsDirections.Both | (KtlsDirections)4)]
    public void Directions_are_one_or_both(KtlsDirections value)
    {
        KtlsOptions options = new();

        Assert.Throws<ArgumentOutOfRangeException>(() => options.Directions = value);
        Assert.Equal(KtlsDirections.Both, options.Directions);
    }

    [Theory]
    [InlineData(-1)]
    [InlineData(3)]
    public void A_fallback_is_one_of_three(int value)
    {
        KtlsOptions options = new();

        Assert.Throws<ArgumentOutOfRangeException>(() => options.Fallback = (KtlsFallback)value);
        Assert.Equal(KtlsFallback.Environment, options.Fallback);
    }

    [Theory]
    [InlineData(-1)]
    [InlineData(3)]
    public void Expecting_no_padding_is_one_of_three(int value)
    {
        KtlsOptions options = new();

        Assert.Throws<ArgumentOutOfRangeException>(() => options.ExpectNoPadding = (KtlsExpectNoPadding)value);
        Assert.Equal(KtlsExpectNoPadding.Automatic, options.ExpectNoPadding);
    }

    [Fact]
    public void Each_request_has_an_SSL_CTX_of_its_own()
    {
        HashSet<TlsContextKey> keys = [];
        foreach (KernelRequest request in new[]
        {
            KernelRequest.Both,
            new KernelRequest(KtlsFallbackReason.None, KtlsDirections.Send),
            new KernelRequest(KtlsFallbackReason.None, KtlsDirections.Receive),
            KernelRequest.Nothing(KtlsFallbackReason.DisabledByMode),
        })
        {
            Assert.Equal(
                KtlsFallbackReason.None,
                ClientHandshakeOptions.TryCreate(new SslClientAuthenticationOptions(), default, request, out HandshakeSettings? settings));
            Assert.Equal(request, settings!.Kernel);
            Assert.Equal(request.FallbackReason == KtlsFallbackReason.None, settings.Context.Flags.HasFlag(ContextFlags.EnableKtls));
            keys.Add(settings.Context);
        }

        Assert.Equal(4, keys.Count);
    }

    /// <summary>Two connections share an SSL_CTX only if nothing that configures it differs.</summary>
    [Fact]
    public void Every_member_of_a_key_counts()
    {
        using X509Certificate2 certificate = SelfSigned.Create();
        TlsContextKey key = new(false, default, 1, 2, "a", "b", "c", "d", null);
        TlsContextKey[] others =
        [
            key with { IsServer = true },
            key with { Flags = ContextFlags.EnableKtls },
            key with { MinVersion = 3 },
            key with { MaxVersion = 3 },
            key with { CipherList = null },
            key with { CipherSuites = null },
            key with { Alpn = "" },
            key with { SignatureAlgorithms = null },
            key with { Certificate = SslStreamCertificateContext.Create(certificate, null, offline: true) },
        ];

        Assert.Equal(typeof(TlsContextKey).GetProperties().Length, others.Length);
        Assert.All(others, other => Assert.NotEqual(key, other));
        Assert.Equal(key, key with { });
        Assert.Equal(key.GetHashCode(), (key with { }).GetHashCode());
    }
}

using System.Net.Security;
using KernelTls.Handshake;
using KernelTls.Interop;
using KernelTls.Offload;

namespace KernelTls.UnitTests;

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
}

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
        Assert.False(options.ExpectNoPadding);
        Assert.Null(options.BusyPoll);
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

    [Fact]
    public void Busy_polling_is_a_number_of_microseconds_that_the_kernel_can_take()
    {
        KtlsOptions options = new() { BusyPoll = TimeSpan.FromMicroseconds(int.MaxValue) };

        Assert.Throws<ArgumentOutOfRangeException>(() => options.BusyPoll = TimeSpan.FromMicroseconds(-1));
        Assert.Throws<ArgumentOutOfRangeException>(() => options.BusyPoll = TimeSpan.FromMicroseconds(1L + int.MaxValue));
        options.BusyPoll = TimeSpan.Zero;
        options.BusyPoll = null;
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
            KernelRequest.Nothing(KtlsFallbackReason.DirectOpenSsl),
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

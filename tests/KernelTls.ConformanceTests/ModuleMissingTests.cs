using System.Net.Sockets;
using System.Security.Authentication;
using KernelTls.Tests;

namespace KernelTls.ConformanceTests;

/// <summary>
/// Tests that a connection uses the kernel as requested, or has the platform's reason. On a lab machine without the
/// module that reason is known: eng/test runs these tests there as well.
/// </summary>
[Trait("Pitfall", "9")]
[Trait("cell", "no-tls-module")]
public class ModuleMissingTests
{
    public static TheoryData<SslProtocols> Versions => [SslProtocols.Tls12, SslProtocols.Tls13];

    [Fact]
    public void The_platform_says_that_the_module_is_missing()
    {
        if (Cell.IsLab)
        {
            Assert.Equal(
                Cell.KtlsExpected ? KtlsFallbackReason.None : KtlsFallbackReason.ModuleMissing, KtlsPlatform.Probe().NotSupportedReason);
        }

        Assert.Equal(KtlsPlatform.Probe().IsSupported, KtlsPlatform.Probe().NotSupportedReason == KtlsFallbackReason.None);
        Assert.Equal(
            KtlsPlatform.Probe().NotSupportedReason == KtlsFallbackReason.ModuleMissing,
            KtlsPlatform.Probe().NotSupportedDetail.StartsWith("TCP_ULP: errno", StringComparison.Ordinal));
    }

    [Theory]
    [MemberData(nameof(Versions))]
    public async Task Preferred_works_and_says_why_it_is_not_the_kernel(SslProtocols version)
    {
        KtlsOptions preferred = new() { Mode = KtlsMode.Preferred };
        await using TlsPair pair = await ConnectAsync(preferred, version);

        KtlsFallbackReason reason = KtlsPlatform.Probe().NotSupportedReason;
        foreach (Stream stream in new[] { pair.Client, pair.Server })
        {
            KtlsOffload offload = ((KtlsStream)stream).Offload;
            Assert.Equal(reason == KtlsFallbackReason.None ? KtlsDataPath.Kernel : KtlsDataPath.Managed, offload.Send);
            Assert.Equal(reason, offload.SendFallbackReason);
        }

        await pair.ExchangeAsync();
    }

    /// <summary>Where the kernel cannot, OpenSSL uses the socket, and the reason is the kernel's.</summary>
    [Theory]
    [MemberData(nameof(Versions))]
    public async Task With_a_fallback_to_OpenSSL_it_is_the_kernel_or_OpenSSL_on_the_socket(SslProtocols version)
    {
        KtlsOptions options = new() { Mode = KtlsMode.Preferred, Fallback = KtlsFallback.OpenSsl };
        await using TlsPair pair = await ConnectAsync(options, version);

        KtlsFallbackReason reason = KtlsPlatform.Probe().NotSupportedReason;
        foreach (Stream stream in new[] { pair.Client, pair.Server })
        {
            KtlsOffload offload = ((KtlsStream)stream).Offload;
            Assert.Equal(reason == KtlsFallbackReason.None ? KtlsDataPath.Kernel : KtlsDataPath.OpenSsl, offload.Send);
            Assert.Equal(reason, offload.SendFallbackReason);
            Assert.Equal(KtlsFallbackReason.None, offload.OpenSslFallbackReason);
        }

        await pair.ExchangeAsync();
    }

    /// <summary>A stream that is no socket leaves the connection to SslStream, with both reasons.</summary>
    [Fact]
    public async Task Where_OpenSSL_cannot_use_the_socket_either_both_reasons_are_reported()
    {
        KtlsOptions options = new() { Mode = KtlsMode.Preferred, Fallback = KtlsFallback.OpenSsl };
        using SocketPair sockets = await SocketPair.ConnectAsync();
        await using KtlsStream client = new(new BufferedStream(new NetworkStream(sockets.Client)), false, options);
        await using KtlsStream server = new(new NetworkStream(sockets.Server), false, options);
        await Task.WhenAll(
            client.AuthenticateAsClientAsync(Handshakes.ClientOptions(SslProtocols.Tls13)),
            server.AuthenticateAsServerAsync(Handshakes.ServerOptions(SslProtocols.Tls13))).InTime("a handshake");

        Assert.Equal(KtlsDataPath.Managed, client.Offload.Send);
        Assert.Equal(
            KtlsPlatform.Probe().IsSupported ? KtlsFallbackReason.NotSocketStream : KtlsPlatform.Probe().NotSupportedReason,
            client.Offload.SendFallbackReason);
        Assert.Equal(KtlsFallbackReason.NotSocketStream, client.Offload.OpenSslFallbackReason);
    }

    [Fact]
    public async Task Required_fails_for_that_reason_before_a_byte_is_sent()
    {
        using SocketPair sockets = await SocketPair.ConnectAsync();
        await using KtlsStream client = new(
            new NetworkStream(sockets.Client), false, new KtlsOptions { Mode = KtlsMode.Required, Directions = KtlsDirections.Send });
        Task shaking = client.AuthenticateAsClientAsync(Handshakes.ClientOptions(SslProtocols.Tls13));
        if (KtlsPlatform.Probe().IsSupported)
        {
            await shaking.StaysPending("a handshake without a peer");
            Assert.True(sockets.Server.Available > 0, "no ClientHello was sent");
            sockets.Server.Dispose();
            await Assert.ThrowsAnyAsync<IOException>(() => shaking.InTime("the handshake to break off"));
            return;
        }

        KtlsNotAvailableException e = await Assert.ThrowsAsync<KtlsNotAvailableException>(() => shaking.InTime());
        Assert.Equal(KtlsPlatform.Probe().NotSupportedReason, e.Reason);
        Assert.Equal(0, sockets.Server.Available);
    }

    private static async Task<TlsPair> ConnectAsync(KtlsOptions options, SslProtocols version)
    {
        TlsPair pair = await TlsPair.CreateAsync(options, options);
        await Task.WhenAll(
            pair.Client.HandshakeAsClientAsync(Handshakes.ClientOptions(version)),
            pair.Server.HandshakeAsServerAsync(Handshakes.ServerOptions(version))).InTime("a handshake");
        return pair;
    }
}

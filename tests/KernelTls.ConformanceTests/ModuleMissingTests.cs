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
                Cell.KtlsExpected ? KtlsFallbackReason.None : KtlsFallbackReason.ModuleMissing, KtlsPlatform.NotSupportedReason);
        }

        Assert.Equal(KtlsPlatform.IsSupported, KtlsPlatform.NotSupportedReason == KtlsFallbackReason.None);
        Assert.Equal(
            KtlsPlatform.NotSupportedReason == KtlsFallbackReason.ModuleMissing,
            KtlsPlatform.NotSupportedDetail.StartsWith("TCP_ULP: errno", StringComparison.Ordinal));
    }

    [Theory]
    [MemberData(nameof(Versions))]
    public async Task Preferred_works_and_says_why_it_is_not_the_kernel(SslProtocols version)
    {
        KtlsOptions preferred = new() { Mode = KtlsMode.Preferred };
        await using TlsPair pair = await TlsPair.CreateAsync(preferred, preferred);
        await Task.WhenAll(
            pair.Client.HandshakeAsClientAsync(Handshakes.ClientOptions(version)),
            pair.Server.HandshakeAsServerAsync(Handshakes.ServerOptions(version))).InTime("a handshake");

        KtlsFallbackReason reason = KtlsPlatform.NotSupportedReason;
        foreach (Stream stream in new[] { pair.Client, pair.Server })
        {
            KtlsOffload offload = ((KtlsStream)stream).Offload;
            Assert.Equal(reason == KtlsFallbackReason.None ? KtlsDataPath.Kernel : KtlsDataPath.Managed, offload.Send);
            Assert.Equal(reason, offload.SendFallbackReason);
        }

        await pair.ExchangeAsync();
    }

    [Fact]
    public async Task Required_fails_for_that_reason_before_a_byte_is_sent()
    {
        using SocketPair sockets = await SocketPair.ConnectAsync();
        await using KtlsStream client = new(
            new NetworkStream(sockets.Client), false, new KtlsOptions { Mode = KtlsMode.Required, Directions = KtlsDirections.Send });
        Task shaking = client.AuthenticateAsClientAsync(Handshakes.ClientOptions(SslProtocols.Tls13));
        if (KtlsPlatform.IsSupported)
        {
            await shaking.StaysPending("a handshake without a peer");
            Assert.True(sockets.Server.Available > 0, "no ClientHello was sent");
            sockets.Server.Dispose();
            await Assert.ThrowsAnyAsync<IOException>(() => shaking.InTime("the handshake to break off"));
            return;
        }

        KtlsNotAvailableException e = await Assert.ThrowsAsync<KtlsNotAvailableException>(() => shaking.InTime());
        Assert.Equal(KtlsPlatform.NotSupportedReason, e.Reason);
        Assert.Equal(0, sockets.Server.Available);
    }
}

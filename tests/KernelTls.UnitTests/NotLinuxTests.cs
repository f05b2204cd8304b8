using System.Net.Security;
using System.Net.Sockets;
using KernelTls.Tests;

namespace KernelTls.UnitTests;

/// <summary>
/// Tests a process on a system that is not Linux: its streams are those of the framework, with one reason, and nothing asks for the native
/// library. On Linux the platform says that it is another system, in a process of its own.
/// </summary>
[Trait("system", "any")]
public class NotLinuxTests
{
    [Fact]
    public Task Streams_are_the_framework_s_and_the_native_library_is_not_asked_for() =>
        OwnProcess.RunAsync(typeof(NotLinuxTests), nameof(Elsewhere));

    [Fact(Explicit = true)]
    public async Task Elsewhere()
    {
        IReadOnlyCollection<string> asked = OtherSystem.Begin();
        List<string> fallbacks = Fallbacks.Collect();

        Assert.Equal(KtlsFallbackReason.NotLinux, KtlsPlatform.Probe().NotSupportedReason);
        Assert.Equal(Environment.OSVersion.Version.ToString(), KtlsPlatform.KernelRelease);
        foreach (KtlsFallback fallback in Enum.GetValues<KtlsFallback>())
        {
            await TalkAsync(new KtlsOptions { Mode = KtlsMode.Preferred, Fallback = fallback });
        }

        await RefuseAsync();
        Assert.NotEmpty(fallbacks);
        Assert.All(fallbacks, f => Assert.Equal(nameof(KtlsFallbackReason.NotLinux), f));
        Assert.Empty(asked);
    }

    private static async Task TalkAsync(KtlsOptions options)
    {
        using SocketPair pair = await SocketPair.ConnectAsync();
        await using KtlsStream client = new(new NetworkStream(pair.Client), leaveInnerStreamOpen: false, options);
        await using KtlsStream server = new(new NetworkStream(pair.Server), leaveInnerStreamOpen: false, options);
        Task accepting = server.AuthenticateAsServerAsync(new SslServerAuthenticationOptions { ServerCertificate = Certificates.Ecdsa });
        await client.AuthenticateAsClientAsync(new SslClientAuthenticationOptions
        {
            TargetHost = "localhost",
            CertificateChainPolicy = Certificates.Trust(),
        }).InTime("the client's handshake");
        await accepting.InTime("the server's handshake");

        byte[] received = new byte[3];
        await client.WriteAsync(new byte[] { 1, 2, 3 });
        await server.ReadExactlyAsync(received).AsTask().InTime("the client's bytes");

        Assert.Equal([1, 2, 3], received);
        Assert.Equal((KtlsDataPath.Managed, KtlsFallbackReason.NotLinux), (client.Offload.Send, client.Offload.SendFallbackReason));
        Assert.Equal((KtlsDataPath.Managed, KtlsFallbackReason.NotLinux), (server.Offload.Receive, server.Offload.ReceiveFallbackReason));
    }

    private static async Task RefuseAsync()
    {
        using SocketPair pair = await SocketPair.ConnectAsync();
        await using KtlsStream client = new(
            new NetworkStream(pair.Client), leaveInnerStreamOpen: false, new KtlsOptions { Mode = KtlsMode.Required });

        KtlsNotAvailableException e = await Assert.ThrowsAsync<KtlsNotAvailableException>(
            () => client.AuthenticateAsClientAsync("localhost").InTime("the refusal"));

        Assert.Equal(KtlsFallbackReason.NotLinux, e.Reason);
    }
}

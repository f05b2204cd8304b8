using System.Net.Security;
using System.Net.Sockets;
using System.Reflection;
using System.Security.Authentication;
using KernelTls.Interop;
using KernelTls.Tests;

namespace KernelTls.UnitTests;

/// <summary>
/// Hides each private member of .NET from the library in turn: connections are then SslStream's, with the reason, and nothing is thrown.
/// </summary>
public class HiddenMemberTests
{
    private const string Probed = "KernelTls.Offload.Platform";

    private static readonly string s_library = typeof(KtlsStream).Assembly.Location;

    // .NET 10 attaches a stapled response in one way. .NET 11 has the members for both, and either is enough (StapleWithoutMemberTests).
    private static readonly string[] s_unused = Environment.Version.Major >= 11
        ? ["SslUpdateOcspStaple", "SslGetPeerCertificate", "X509Destroy", "Interop+Crypto, System.Net.Security"]
        : ["SslUpdateOcspStaple"];

    public static TheoryData<string> Members => [.. PrivateNames.Of(s_library, nameof(RuntimeInternals)).Except(s_unused)];

    /// <summary>Gets the members without which there is no telemetry, or none that are needed.</summary>
    public static TheoryData<string> Dispensable =>
        [.. PrivateNames.Of(s_library, nameof(RuntimeTelemetry)).Except(PrivateNames.Of(s_library, nameof(RuntimeInternals))), .. s_unused];

    [Fact]
    public void Every_member_is_found()
    {
        Assert.InRange(Members.Count, 40, 60);
        Assert.Contains("_connectionInfo", PrivateNames.Of(s_library, nameof(RuntimeInternals)));
    }

    [Theory]
    [MemberData(nameof(Members))]
    public Task Without_a_member_of_the_runtime_connections_are_SslStreams(string hidden) =>
        AssertConnectsAsync(hidden, nameof(KtlsFallbackReason.RuntimeNotSupported));

    [Theory]
    [MemberData(nameof(Dispensable))]
    public Task Without_a_dispensable_member_connections_are_as_ever(string hidden) =>
        AssertConnectsAsync(hidden, nameof(KtlsFallbackReason.None));

    [Fact]
    public void Without_its_member_an_HttpClientHandler_stays_as_it_is()
    {
        using HttpClientHandler handler = new();
        Assert.NotNull(HttpInternals.TryGetHandler(handler));

        string hidden = Assert.Single(PrivateNames.Of(s_library, nameof(HttpInternals)));
        Type altered = HidingContext.Load(s_library, hidden).GetType(typeof(HttpInternals).FullName!, throwOnError: true)!;
        Assert.Null(altered.GetMethod(nameof(HttpInternals.TryGetHandler))!.Invoke(null, [handler]));
    }

    private static async Task AssertConnectsAsync(string hidden, string reason)
    {
        Assembly library = HidingContext.Load(s_library, hidden);
        object platform = library.GetType(Probed, throwOnError: true)!.GetProperty("Current")!.GetValue(null)!;
        Assert.Equal(reason, AlteredStream.Get(platform, "DirectReason"));
        Assert.Equal(reason != nameof(KtlsFallbackReason.None), AlteredStream.Get(platform, "Detail").Contains(" lacks ", StringComparison.Ordinal));

        using SocketPair sockets = await SocketPair.ConnectAsync();
        await using SslStream client = AlteredStream.Create(library, new NetworkStream(sockets.Client, ownsSocket: false));
        await using SslStream server = AlteredStream.Create(library, new NetworkStream(sockets.Server, ownsSocket: false));
        await Task.WhenAll(
            AlteredStream.AuthenticateAsync(client, Handshakes.ClientOptions(SslProtocols.Tls13)),
            AlteredStream.AuthenticateAsync(server, Handshakes.ServerOptions(SslProtocols.Tls13))).InTime("the handshake");
        await client.WriteAsync("hello"u8.ToArray()).InTime("the write");
        byte[] received = new byte[5];
        await server.ReadExactlyAsync(received).InTime("the read");

        Assert.Equal("hello"u8, received);
        foreach (SslStream stream in (SslStream[])[client, server])
        {
            if (reason != nameof(KtlsFallbackReason.None))
            {
                Assert.Equal(reason, AlteredStream.OffloadOf(stream, nameof(KtlsOffload.SendFallbackReason)));
                Assert.Equal(reason, AlteredStream.OffloadOf(stream, nameof(KtlsOffload.ReceiveFallbackReason)));
            }

            Assert.Equal(reason != nameof(KtlsFallbackReason.None), AlteredStream.OffloadOf(stream, nameof(KtlsOffload.Send)) == nameof(KtlsDataPath.Managed));
        }
    }
}

using System.Net.Security;
using System.Net.Sockets;
using System.Security.Authentication;
using KernelTls.Tests;

namespace KernelTls.FunctionalTests;

/// <summary>
/// Tests a request for one direction: the kernel has its keys and never the other's, by the kernel's own report. The
/// peer is in user space, so the kernel's counters are those of this end.
/// </summary>
[Trait("cell", "smoke")]
public class DirectionTests : KernelTest
{
    private static readonly KtlsOptions s_peer = new() { Mode = KtlsMode.Disabled, Fallback = KtlsFallback.OpenSsl };

    public static TheoryData<SslProtocols, KtlsDirections, string> Cases
    {
        get
        {
            TheoryData<SslProtocols, KtlsDirections, string> data = [];
            foreach (SslProtocols version in new[] { SslProtocols.Tls12, SslProtocols.Tls13 })
            {
                foreach (KtlsDirections asked in new[] { KtlsDirections.Send, KtlsDirections.Receive, KtlsDirections.Both })
                {
                    data.Add(version, asked, "client");
                    data.Add(version, asked, "server");
                    data.Add(version, asked, "server by callback");
                }
            }

            return data;
        }
    }

    [Theory]
    [MemberData(nameof(Cases))]
    public async Task Only_what_is_asked_for_goes_to_the_kernel(SslProtocols version, KtlsDirections asked, string side)
    {
        string host = $"{Guid.NewGuid():N}.wild.test";
        KtlsDirections expected = asked & (ReceivingEnds(version) == 0 ? KtlsDirections.Send : KtlsDirections.Both);
        foreach (bool resumed in new[] { false, true })
        {
            TlsStatistics before = TlsStatistics.Read();
            await using TlsPair pair = await ConnectAsync(version, asked, side, host);
            KtlsStream limited = (KtlsStream)(side == "client" ? pair.Client : pair.Server);
            Socket socket = side == "client" ? pair.ClientSocket : pair.ServerSocket;

            Assert.Equal(resumed, ((KtlsStream)pair.Client).IsResumed);
            AssertOffload(limited.Offload, asked, expected);
            Assert.Equal(expected, KernelWord.DirectionsOf(socket));
            TlsStatistics after = TlsStatistics.Read();
            Assert.Equal(expected.HasFlag(KtlsDirections.Send) ? 1 : 0, after.SendSoftware - before.SendSoftware);
            Assert.Equal(expected.HasFlag(KtlsDirections.Receive) ? 1 : 0, after.ReceiveSoftware - before.ReceiveSoftware);

            await pair.ExchangeAsync();
            Assert.Equal(expected, KernelWord.DirectionsOf(socket));
        }
    }

    [Theory]
    [InlineData(KtlsDirections.Send, false)]
    [InlineData(KtlsDirections.Send, true)]
    [InlineData(KtlsDirections.Receive, false)]
    [InlineData(KtlsDirections.Receive, true)]
    public async Task A_key_update_moves_no_direction_into_the_kernel(KtlsDirections asked, bool request)
    {
        using ForeignPeer listener = new();
        using ExternalProgram client = KeyUpdateTests.StartClient(listener);
        (KtlsStream server, Socket socket) = await listener.AcceptAsync(new KtlsOptions { Mode = KtlsMode.Preferred, Directions = asked });
        await using KtlsStream closing = server;
        KtlsDirections expected = asked & (ReceivesTls13 ? KtlsDirections.Both : KtlsDirections.Send);
        Assert.Equal(expected, KernelWord.DirectionsOf(socket));
        bool goesOn = KtlsPlatform.Probe().CanRekey || (expected == KtlsDirections.Send && !request) || expected == KtlsDirections.None;
        TlsStatistics before = TlsStatistics.Read();

        for (int i = 0; i < 3; i++)
        {
            await OpenSslProgram.UpdateSendKeyAsync(client, request);
            await client.SayAsync($"after update {i}");
            try
            {
                Assert.Equal($"after update {i}\n", await KeyUpdateTests.ReadLineAsync(server).InTime());
                await server.WriteAsync(System.Text.Encoding.ASCII.GetBytes($"answer {i}\n")).InTime();
                await client.OutputUpToAsync($"answer {i}\n");
            }
            catch (IOException e) when (!goesOn)
            {
                Assert.IsType<KtlsRekeyException>(e);
                return;
            }

            Assert.Equal(expected, KernelWord.DirectionsOf(socket));
        }

        Assert.True(goesOn, "a cell that cannot rekey went on");
        TlsStatistics after = TlsStatistics.Read();
        Assert.Equal(expected == KtlsDirections.Receive ? 3 : 0, after.ReceiveRekeyOk - before.ReceiveRekeyOk);
        Assert.Equal(expected == KtlsDirections.Send && request ? 3 : 0, after.SendRekeyOk - before.SendRekeyOk);
        Assert.Equal((before.SendSoftware, before.ReceiveSoftware), (after.SendSoftware, after.ReceiveSoftware));
    }

    /// <summary>
    /// OpenSSL 3.0 keeps the receiving keys of TLS 1.3: for Both that is a failure, for Send it is not.
    /// </summary>
    [Theory]
    [MemberData(nameof(Versions))]
    public async Task Required_is_about_what_is_asked_for(SslProtocols version)
    {
        await using TlsPair pair = await TlsPair.CreateAsync(
            new KtlsOptions { Mode = KtlsMode.Required, Directions = KtlsDirections.Send },
            new KtlsOptions { Mode = KtlsMode.Required, Directions = KtlsDirections.Send });
        await Task.WhenAll(
            pair.Client.HandshakeAsClientAsync(Handshakes.ClientOptions(version)),
            pair.Server.HandshakeAsServerAsync(Handshakes.ServerOptions(version))).InTime("a handshake");

        Assert.Equal(KtlsDirections.Send, KernelWord.DirectionsOf(pair.ClientSocket));
        Assert.Equal(KtlsDirections.Send, KernelWord.DirectionsOf(pair.ServerSocket));
        Assert.False(((KtlsStream)pair.Client).Offload.IsComplete);
        await pair.ExchangeAsync();
    }

    private static void AssertOffload(KtlsOffload offload, KtlsDirections asked, KtlsDirections expected)
    {
        Assert.Equal(Expected(KtlsDirections.Send), (offload.Send, offload.SendFallbackReason));
        Assert.Equal(Expected(KtlsDirections.Receive), (offload.Receive, offload.ReceiveFallbackReason));

        (KtlsDataPath Path, KtlsFallbackReason Reason) Expected(KtlsDirections direction) =>
            expected.HasFlag(direction) ? (KtlsDataPath.Kernel, KtlsFallbackReason.None)
            : (KtlsDataPath.OpenSsl, asked.HasFlag(direction) ? KtlsFallbackReason.OpenSslTooOld : KtlsFallbackReason.DirectionNotRequested);
    }

    private static async Task<TlsPair> ConnectAsync(SslProtocols version, KtlsDirections asked, string side, string host)
    {
        KtlsOptions limited = new() { Mode = KtlsMode.Preferred, Directions = asked };
        TlsPair pair = await TlsPair.CreateAsync(side == "client" ? limited : s_peer, side == "client" ? s_peer : limited);
        SslClientAuthenticationOptions clientOptions = Handshakes.ClientOptions(version);
        clientOptions.TargetHost = host;
        clientOptions.AllowTlsResume = true;
        SslServerAuthenticationOptions serverOptions = Handshakes.ServerOptions(version);
        serverOptions.ServerCertificateContext = Certificates.KindContext("wildcard");
        await Task.WhenAll(
            pair.Client.HandshakeAsClientAsync(clientOptions),
            side == "server by callback"
                ? pair.Server.HandshakeAsServerAsync((_, _, _, _) => ValueTask.FromResult(serverOptions), null)
                : pair.Server.HandshakeAsServerAsync(serverOptions)).InTime("a handshake");

        // The ticket for the next connection.
        await pair.Server.WriteAsync(new byte[] { 1 }).InTime("a byte");
        await pair.Client.ReadExactlyAsync(new byte[1]).InTime("a byte");
        return pair;
    }
}

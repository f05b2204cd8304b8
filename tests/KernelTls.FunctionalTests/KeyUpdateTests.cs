using System.Security.Authentication;
using System.Text;
using KernelTls.Tests;

namespace KernelTls.FunctionalTests;

/// <summary>
/// Tests a peer that updates its keys (RFC 8446, section 4.6.3). If kernel and OpenSSL can change keys, data continues
/// both ways. Otherwise there is one typed error and never an incorrect byte.
/// </summary>
[Trait("cell", "smoke")]
[Trait("cell", "race")]
public class KeyUpdateTests
{
    public static TheoryData<TlsMode> OnOpenSsl => [.. Modes.OnOpenSsl];

    [Theory]
    [MemberData(nameof(OnOpenSsl))]
    public async Task The_peer_updates_its_own_keys(TlsMode mode) => await RunAsync(mode, request: false);

    [Theory]
    [MemberData(nameof(OnOpenSsl))]
    public async Task The_peer_updates_its_keys_and_asks_for_ours(TlsMode mode) => await RunAsync(mode, request: true);

    [Theory]
    [MemberData(nameof(OnOpenSsl))]
    public async Task The_peer_asks_for_our_keys_while_we_only_write(TlsMode mode)
    {
        using ForeignPeer listener = new();
        using ExternalProgram client = StartClient(listener);
        await using KtlsStream server = await listener.AcceptAsync(mode, SslProtocols.Tls13);
        bool goesOn = mode == TlsMode.DirectOpenSsl || KtlsPlatform.Probe().CanRekey;
        TlsStatistics before = goesOn && mode == TlsMode.Kernel ? TlsStatistics.Read() : default;
        Task<string> reading = ReadLineAsync(server);
        await server.WriteAsync("before\n"u8.ToArray()).InTime();
        await client.OutputUpToAsync("before\n");

        await OpenSslProgram.UpdateSendKeyAsync(client, request: true);
        await client.SayAsync("pushed");
        try
        {
            Assert.Equal("pushed\n", await reading.InTime());
            for (int i = 0; i < 20; i++)
            {
                await server.WriteAsync(Encoding.ASCII.GetBytes($"line {i}\n")).InTime();
                await client.OutputUpToAsync($"line {i}\n");
            }
        }
        catch (IOException e) when (!goesOn)
        {
            Assert.IsType<KtlsRekeyException>(e);
            return;
        }

        Assert.True(goesOn || !server.Offload.IsComplete, "a cell that cannot rekey went on");
        if (goesOn && mode == TlsMode.Kernel)
        {
            Assert.Equal(1, TlsStatistics.Read().SendRekeyOk - before.SendRekeyOk);
            Assert.Equal(1, TlsStatistics.Read().ReceiveRekeyOk - before.ReceiveRekeyOk);
        }
    }

    private static async Task RunAsync(TlsMode mode, bool request)
    {
        using ForeignPeer listener = new();
        using ExternalProgram client = StartClient(listener);
        await using KtlsStream server = await listener.AcceptAsync(mode, SslProtocols.Tls13);
        bool sendStays = mode == TlsMode.DirectOpenSsl || KtlsPlatform.Probe().CanRekey || !request;
        bool receiveStays = mode == TlsMode.DirectOpenSsl || KtlsPlatform.Probe().CanRekey || server.Offload.Receive == KtlsDataPath.OpenSsl;

        await client.SayAsync("first");
        Assert.Equal("first\n", await ReadLineAsync(server).InTime());
        for (int i = 0; i < 3; i++)
        {
            await OpenSslProgram.UpdateSendKeyAsync(client, request);
            await client.SayAsync($"after update {i}");
            try
            {
                Assert.Equal($"after update {i}\n", await ReadLineAsync(server).InTime());
                await server.WriteAsync(Encoding.ASCII.GetBytes($"answer {i}\n")).InTime();
                await client.OutputUpToAsync($"answer {i}\n");
            }
            catch (IOException e) when (!(sendStays && receiveStays))
            {
                Assert.IsType<KtlsRekeyException>(e);
                await Assert.ThrowsAnyAsync<IOException>(() => server.ReadAsync(new byte[1]).InTime());
                return;
            }
        }

        Assert.True(sendStays && receiveStays, "a cell that cannot rekey went on");
    }

    /// <summary>Starts an interactive client: a line with only k or K updates the keys.</summary>
    internal static ExternalProgram StartClient(ForeignPeer listener) => ExternalProgram.Start(
        "openssl", null, "s_client", "-connect", $"127.0.0.1:{listener.PortText}", "-tls1_3");

    internal static async Task<string> ReadLineAsync(KtlsStream server)
    {
        StringBuilder line = new();
        byte[] one = new byte[1];
        while (line.Length == 0 || line[^1] != '\n')
        {
            Assert.NotEqual(0, await server.ReadAsync(one));
            line.Append((char)one[0]);
        }

        return line.ToString();
    }
}

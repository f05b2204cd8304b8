using System.Net.Sockets;
using System.Security.Authentication;
using KernelTls.IO;
using KernelTls.Tests;

namespace KernelTls.FunctionalTests;

/// <summary>
/// Tests that connections expect no padding by default, and what happens if a peer pads. The data is correct in each case.
/// </summary>
/// <remarks>Each test has a watch of its own: the minute that follows many padded records would outlast it.</remarks>
[Trait("cell", "smoke")]
public sealed class PaddingWatchTests : KernelTest, IDisposable
{
    private const int Size = 700;
    private static readonly string[] s_padding = ["-max_send_frag", "1000", "-record_padding", "512"];
    private readonly PaddingWatch _before = PaddingWatch.Shared;

    private static bool CanExpectNone => KtlsPlatform.Probe().CanExpectNoPadding;

    public void Dispose() => PaddingWatch.Shared = _before;

    [Theory]
    [InlineData(SslProtocols.Tls12, false)]
    [InlineData(SslProtocols.Tls13, true)]
    public async Task By_default_connections_expect_none_while_the_counter_stands_still(SslProtocols version, bool expected)
    {
        PaddingWatch.Shared = new PaddingWatch(TimeProvider.System, static () => 7);
        List<string> refusals = Refusals.Collect();
        await using TlsPair pair = await TlsPair.CreateAsync(new KtlsOptions(), new KtlsOptions { Mode = KtlsMode.Preferred });
        await HandshakeAsync(pair, version);

        Assert.Equal(expected && CanExpectNone, NoPadding.IsExpected(pair.ServerSocket));
        await pair.ExchangeAsync();
        Assert.Empty(refusals);
    }

    [Fact]
    public async Task A_counter_that_cannot_be_read_means_padding()
    {
        PaddingWatch.Shared = new PaddingWatch(TimeProvider.System, static () => null);
        await using TlsPair pair = await TlsPair.CreateAsync(new KtlsOptions { Mode = KtlsMode.Preferred }, new KtlsOptions { Mode = KtlsMode.Preferred });
        await HandshakeAsync(pair, SslProtocols.Tls13);

        Assert.False(NoPadding.IsExpected(pair.ClientSocket) || NoPadding.IsExpected(pair.ServerSocket));
        await pair.ExchangeAsync();
    }

    [Fact]
    public async Task A_connection_whose_peer_pads_goes_back_and_so_do_the_next()
    {
        const int Records = 4 * PaddingWatch.ReceivesBetweenQuestions;
        ManualTime time = new();
        PaddingWatch.Shared = new PaddingWatch(time, static () => TlsStatistics.Read().NoPaddingViolation);
        using ForeignPeer listener = new();
        using TemporaryDirectory directory = new();
        using ExternalProgram client = OpenSslProgram.Connect(listener.Port, directory, SslProtocols.Tls13, s_padding);
        (KtlsStream server, Socket socket) = await listener.AcceptAsync(new KtlsOptions { Mode = KtlsMode.Preferred });
        await using KtlsStream closing = server;
        Assert.Equal(CanExpectNone, NoPadding.IsExpected(socket));
        long before = TlsStatistics.Read().NoPaddingViolation;

        // The watch looks at the counter once a second. Its clock stands still while records are read, however long that takes.
        await ReadEachAsync(client, server, 0, Records / 2);
        Assert.Equal(CanExpectNone, NoPadding.IsExpected(socket));
        time.Advance(TimeSpan.FromSeconds(1));
        await ReadEachAsync(client, server, Records / 2, Records);

        Assert.False(NoPadding.IsExpected(socket));
        long violations = TlsStatistics.Read().NoPaddingViolation - before;
        Assert.InRange(violations, CanExpectNone ? Records / 2 : 0, CanExpectNone ? Records - PaddingWatch.ReceivesBetweenQuestions + 1 : 0);
        await using TlsPair next = await TlsPair.CreateAsync(new KtlsOptions { Mode = KtlsMode.Preferred }, new KtlsOptions { Mode = KtlsMode.Preferred });
        await HandshakeAsync(next, SslProtocols.Tls13);
        Assert.False(NoPadding.IsExpected(next.ServerSocket));
        await next.ExchangeAsync();
    }

    private static Task HandshakeAsync(TlsPair pair, SslProtocols version) =>
        Task.WhenAll(
            pair.Client.HandshakeAsClientAsync(Handshakes.ClientOptions(version)),
            pair.Server.HandshakeAsServerAsync(Handshakes.ServerOptions(version))).InTime("a handshake");

    /// <summary>Reads each record before the next one is sent.</summary>
    private static async Task ReadEachAsync(ExternalProgram client, KtlsStream server, int first, int end)
    {
        byte[] received = new byte[Size * 4];
        for (int i = first; i < end; i++)
        {
            await client.Input.WriteAsync(Pattern.At(i * Size, Size));
            await client.Input.FlushAsync();
            int count = await server.ReadAsync(received).InTime($"record {i}");
            Pattern.AssertAt(i * Size, received.AsSpan(0, count));
            Assert.Equal(Size, count);
        }
    }
}

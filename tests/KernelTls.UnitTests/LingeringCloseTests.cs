using System.Net.Sockets;
using KernelTls.IO;
using KernelTls.Offload;
using KernelTls.Tests;

namespace KernelTls.UnitTests;

/// <summary>Runs alone, because it counts the connections of the process.</summary>
[CollectionDefinition(nameof(LingeringCloseTests), DisableParallelization = true)]
public class WithoutOtherClosings;

/// <summary>Tests that a connection that remains open after its stream is limited in time, bytes and number.</summary>
[Collection(nameof(LingeringCloseTests))]
public sealed class LingeringCloseTests
{
    public LingeringCloseTests() => Assert.Equal(KtlsFallbackReason.None, Platform.Current.DirectReason);

    [Fact]
    public async Task A_peer_that_sends_late_reads_the_last_words_and_the_end()
    {
        using SocketPair pair = await SocketPair.ConnectAsync();
        await pair.Client.SendAsync(new byte[1000]);
        await pair.Server.SendAsync(new byte[3]);
        LingeringClose.Begin(pair.Server, ownsSocket: true);
        Assert.True(pair.Server.SafeHandle.IsClosed);

        // Each would be answered by a reset, which discards what the peer has not read yet.
        await pair.Client.SendAsync(new byte[1000]);
        await pair.Client.SendAsync(new byte[1000]);
        Assert.Equal(3, await pair.Client.ReceiveAsync(new byte[10]).InTime("the last words"));
        Assert.Equal(0, await pair.Client.ReceiveAsync(new byte[10]).InTime("the end"));
        pair.Client.Shutdown(SocketShutdown.Send);
        await LingeringClose.WhenAllEnded().InTime("the connection to end");
        Assert.Equal(0, LingeringClose.Count);
    }

    [Fact]
    public async Task A_peer_that_has_closed_is_not_kept()
    {
        using SocketPair pair = await SocketPair.ConnectAsync();
        pair.Client.Shutdown(SocketShutdown.Send);
        Assert.Equal(0, await pair.Server.ReceiveAsync(new byte[1]).InTime("the end"));

        LingeringClose.Begin(pair.Server, ownsSocket: true);

        Assert.Equal(0, LingeringClose.Count);
    }

    [Fact]
    public async Task A_peer_that_stays_is_left_after_a_second()
    {
        using SocketPair pair = await SocketPair.ConnectAsync();
        LingeringClose.Begin(pair.Server, ownsSocket: true);
        Assert.Equal(1, LingeringClose.Count);

        await LingeringClose.WhenAllEnded().InTime("the limit");

        Assert.Equal(0, LingeringClose.Count);
        await IsResetAsync(pair.Client);
    }

    [Fact]
    public async Task A_peer_that_sends_on_is_left_after_some_data()
    {
        using SocketPair pair = await SocketPair.ConnectAsync();
        LingeringClose.Begin(pair.Server, ownsSocket: true);

        long sent = 0;
        SocketException failure = await Assert.ThrowsAsync<SocketException>(() => Task.Run(async () =>
        {
            while (true)
            {
                sent += await pair.Client.SendAsync(new byte[10_000]);
            }
        }).InTime("the reset"));

        Assert.True(failure.SocketErrorCode is SocketError.ConnectionReset or SocketError.Shutdown, $"{failure.SocketErrorCode}");
        // What is discarded, and what fits in the buffers of the two sockets. In a second, far more would be sent.
        Assert.InRange(sent, 256 * 1024, 32 * 1024 * 1024);

        // The client sees the reset first.
        await LingeringClose.WhenAllEnded().InTime("the close to be complete");
        Assert.Equal(0, LingeringClose.Count);
    }

    [Fact]
    public async Task The_socket_of_an_application_stays_open()
    {
        using SocketPair pair = await SocketPair.ConnectAsync();
        LingeringClose.Begin(pair.Server, ownsSocket: false);
        Assert.False(pair.Server.SafeHandle.IsClosed);

        pair.Server.Dispose();

        await pair.Client.SendAsync(new byte[1000]);
        Assert.Equal(0, await pair.Client.ReceiveAsync(new byte[10]).InTime("the end, not a reset"));
        await LingeringClose.WhenAllEnded().InTime("the limit");
    }

    [Fact]
    public async Task An_application_that_wants_a_reset_gets_it()
    {
        using SocketPair pair = await SocketPair.ConnectAsync();
        pair.Server.LingerState = new LingerOption(true, 0);

        LingeringClose.Begin(pair.Server, ownsSocket: true);

        Assert.Equal(0, LingeringClose.Count);
        Assert.False(pair.Server.SafeHandle.IsClosed);
    }

    [Fact]
    public async Task The_oldest_is_closed_when_there_are_too_many()
    {
        const int TooMany = LingeringClose.MaxCount + 10;
        List<SocketPair> pairs = [];
        try
        {
            while (pairs.Count < TooMany)
            {
                pairs.Add(await SocketPair.ConnectAsync());
            }

            int most = 0;
            foreach (SocketPair pair in pairs)
            {
                LingeringClose.Begin(pair.Server, ownsSocket: true);
                most = Math.Max(most, LingeringClose.Count);
            }

            Assert.InRange(most, 1, LingeringClose.MaxCount);
            await IsResetAsync(pairs[0].Client);
            await LingeringClose.WhenAllEnded().InTime("the limit");
        }
        finally
        {
            pairs.ForEach(p => p.Dispose());
        }
    }

    private static async Task IsResetAsync(Socket peer)
    {
        SocketException failure = await Assert.ThrowsAsync<SocketException>(() => Task.Run(async () =>
        {
            while (true)
            {
                await peer.SendAsync(new byte[1]);
                await Task.Delay(1);
            }
        }).InTime("the reset"));
        Assert.True(failure.SocketErrorCode is SocketError.ConnectionReset or SocketError.Shutdown, $"{failure.SocketErrorCode}");
    }
}

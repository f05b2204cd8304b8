using System.Net.Sockets;
using System.Security.Authentication;
using KernelTls.Tests;

namespace KernelTls.ConformanceTests;

[Trait("cell", "race")]
public class CancellationTests
{
    public static TheoryData<TlsMode, SslProtocols> All => Modes.All;

    public static TheoryData<TlsMode, SslProtocols> OnOpenSsl => Modes.AllOnOpenSsl;

    [Theory]
    [MemberData(nameof(All))]
    public async Task A_cancelled_token_cancels_a_read_and_takes_nothing(TlsMode mode, SslProtocols version)
    {
        await using TlsPair pair = await TlsPair.ConnectAsync(mode, version);

        OperationCanceledException e = await Assert.ThrowsAnyAsync<OperationCanceledException>(
            () => pair.Server.ReadAsync(new byte[1], new CancellationToken(true)).InTime());
        Assert.True(e.CancellationToken.IsCancellationRequested);

        await AssertUsable(pair);
    }

    [Theory]
    [MemberData(nameof(OnOpenSsl))]
    public async Task A_cancelled_token_cancels_a_write_and_sends_nothing(TlsMode mode, SslProtocols version)
    {
        await using TlsPair pair = await TlsPair.ConnectAsync(mode, version);

        await Assert.ThrowsAnyAsync<OperationCanceledException>(
            () => pair.Client.WriteAsync(new byte[1], new CancellationToken(true)).InTime());

        await AssertUsable(pair);
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task A_read_is_cancelled_while_it_waits_and_the_stream_stays_usable(TlsMode mode, SslProtocols version)
    {
        await using TlsPair pair = await TlsPair.ConnectAsync(mode, version);
        for (int i = 0; i < 3; i++)
        {
            using CancellationTokenSource source = new();
            Task<int> reading = pair.Server.ReadAsync(new byte[10], source.Token).AsTask();
            Assert.False(reading.IsCompleted);

            await source.CancelAsync();

            OperationCanceledException e = await Assert.ThrowsAnyAsync<OperationCanceledException>(() => reading.InTime());
            Assert.Equal(source.Token, e.CancellationToken);
        }

        await AssertUsable(pair);
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task A_token_that_is_never_cancelled_changes_nothing(TlsMode mode, SslProtocols version)
    {
        await using TlsPair pair = await TlsPair.ConnectAsync(mode, version);
        using CancellationTokenSource source = new();
        byte[] buffer = new byte[3];

        // TLS 1.3 tickets arrive before the data, on a receive that can be canceled.
        Task<int> reading = pair.Client.ReadAsync(buffer, source.Token).AsTask();
        await reading.StaysPending();
        await pair.Server.WriteAsync(new byte[] { 1, 2, 3 }, source.Token).InTime();

        Assert.Equal(3, await reading.InTime());
        Assert.Equal([1, 2, 3], buffer);
    }

    [Theory]
    [MemberData(nameof(OnOpenSsl))]
    public async Task A_write_that_is_cancelled_half_way_breaks_the_sending_half(TlsMode mode, SslProtocols version)
    {
        await using TlsPair pair = await TlsPair.ConnectAsync(mode, version, tune: o => o.RequireCloseNotify = true);
        pair.ShrinkBuffers();
        using CancellationTokenSource source = new();
        Task writing = pair.Client.WriteAsync(new byte[TlsPair.MoreThanFits], source.Token).AsTask();
        await writing.StaysPending();

        await source.CancelAsync();
        await Assert.ThrowsAnyAsync<OperationCanceledException>(() => writing.InTime());

        // It is unknown how much the peer has received: nothing may follow, and the peer must not see a clean end.
        await Assert.ThrowsAsync<IOException>(() => pair.Client.WriteAsync(new byte[1]).InTime());
        Task draining = pair.Server.CopyToAsync(Stream.Null);
        await pair.Client.DisposeAsync();
        await Assert.ThrowsAnyAsync<IOException>(() => draining.InTime());
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task A_blocking_read_honours_ReadTimeout(TlsMode mode, SslProtocols version)
    {
        await using TlsPair pair = await TlsPair.ConnectAsync(mode, version);
        Assert.True(pair.Server.CanTimeout);
        Assert.Equal(Timeout.Infinite, pair.Server.ReadTimeout);
        pair.Server.ReadTimeout = 50;
        Assert.Equal(50, pair.Server.ReadTimeout);

        IOException e = await Assert.ThrowsAsync<IOException>(
            () => Limits.Blocking(() => pair.Server.Read(new byte[1])).InTime());

        Assert.Equal(SocketError.TimedOut, Assert.IsType<SocketException>(e.InnerException).SocketErrorCode);
    }

    [Theory]
    [MemberData(nameof(OnOpenSsl))]
    public async Task A_stream_goes_on_after_a_read_that_timed_out(TlsMode mode, SslProtocols version)
    {
        await using TlsPair pair = await TlsPair.ConnectAsync(mode, version);
        pair.Server.ReadTimeout = 50;
        await Assert.ThrowsAsync<IOException>(() => Limits.Blocking(() => pair.Server.Read(new byte[1])).InTime());
        pair.Server.ReadTimeout = Timeout.Infinite;

        await AssertUsable(pair);
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task A_blocking_write_honours_WriteTimeout(TlsMode mode, SslProtocols version)
    {
        await using TlsPair pair = await TlsPair.ConnectAsync(mode, version);
        pair.ShrinkBuffers();
        pair.Client.WriteTimeout = 100;
        Assert.Equal(100, pair.Client.WriteTimeout);

        IOException e = await Assert.ThrowsAsync<IOException>(
            () => Limits.Blocking(() => pair.Client.Write(new byte[TlsPair.MoreThanFits])).InTime());

        Assert.Equal(SocketError.TimedOut, Assert.IsType<SocketException>(e.InnerException).SocketErrorCode);
    }

    private static async Task AssertUsable(TlsPair pair)
    {
        byte[] buffer = new byte[3];
        await pair.Client.WriteAsync(new byte[] { 1, 2, 3 }).InTime();
        await pair.Server.ReadExactlyAsync(buffer).InTime();
        Assert.Equal([1, 2, 3], buffer);
        await pair.Server.WriteAsync(new byte[] { 4, 5, 6 }).InTime();
        await pair.Client.ReadExactlyAsync(buffer).InTime();
        Assert.Equal([4, 5, 6], buffer);
    }
}

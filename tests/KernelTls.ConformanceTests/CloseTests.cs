using System.Net.Sockets;
using System.Security.Authentication;
using KernelTls.Tests;

namespace KernelTls.ConformanceTests;

public class CloseTests
{
    public static TheoryData<TlsMode, SslProtocols> All => Modes.All;

    public static TheoryData<TlsMode, SslProtocols> OnOpenSsl => Modes.AllOnOpenSsl;

    public static TheoryData<TlsMode, SslProtocols> OnSslStream => Modes.AllManaged;

    [Theory]
    [MemberData(nameof(All))]
    public async Task After_a_shutdown_the_peer_reads_what_was_sent_and_then_the_end(TlsMode mode, SslProtocols version)
    {
        await using TlsPair pair = await TlsPair.ConnectAsync(mode, version);
        await pair.Client.WriteAsync(new byte[] { 1, 2, 3 }).InTime();
        await pair.Client.ShutdownAsync().InTime();

        byte[] buffer = new byte[3];
        await pair.Server.ReadExactlyAsync(buffer).InTime();
        Assert.Equal([1, 2, 3], buffer);
        for (int i = 0; i < 3; i++)
        {
            Assert.Equal(0, await pair.Server.ReadAsync(buffer).InTime());
        }
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task Nothing_is_written_after_a_shutdown(TlsMode mode, SslProtocols version)
    {
        await using TlsPair pair = await TlsPair.ConnectAsync(mode, version);
        await pair.Client.ShutdownAsync().InTime();

        await Assert.ThrowsAsync<InvalidOperationException>(() => pair.Client.WriteAsync(new byte[1]).InTime());
        Assert.Throws<InvalidOperationException>(() => pair.Client.Write(new byte[1]));
        await Assert.ThrowsAsync<InvalidOperationException>(() => pair.Client.ShutdownAsync().InTime());
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task Reading_goes_on_after_a_shutdown_of_one_s_own(TlsMode mode, SslProtocols version)
    {
        await using TlsPair pair = await TlsPair.ConnectAsync(mode, version);
        await pair.Client.ShutdownAsync().InTime();
        Assert.Equal(0, await pair.Server.ReadAsync(new byte[1]).InTime());

        Task sending = Pattern.SendAsync(pair.Server, 500_000);
        await Pattern.ReceiveAsync(pair.Client, 500_000).InTime();
        await sending.InTime();

        await pair.Server.ShutdownAsync().InTime();
        Assert.Equal(0, await pair.Client.ReadAsync(new byte[1]).InTime());
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task Both_ends_may_shut_down_at_once(TlsMode mode, SslProtocols version)
    {
        await using TlsPair pair = await TlsPair.ConnectAsync(mode, version);

        await Task.WhenAll(pair.Client.ShutdownAsync(), pair.Server.ShutdownAsync()).InTime();

        Assert.Equal(0, await pair.Client.ReadAsync(new byte[1]).InTime());
        Assert.Equal(0, await pair.Server.ReadAsync(new byte[1]).InTime());
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task A_shutdown_ends_a_read_that_waits(TlsMode mode, SslProtocols version)
    {
        await using TlsPair pair = await TlsPair.ConnectAsync(mode, version);
        Task<int> reading = pair.Server.ReadAsync(new byte[1]).AsTask();
        Assert.False(reading.IsCompleted);

        await pair.Client.ShutdownAsync().InTime();

        Assert.Equal(0, await reading.InTime());
    }

    [Theory]
    [MemberData(nameof(OnOpenSsl))]
    public async Task A_FIN_without_close_notify_is_a_truncation_where_it_is_required(TlsMode mode, SslProtocols version)
    {
        await using TlsPair pair = await TlsPair.ConnectAsync(mode, version, tune: o => o.RequireCloseNotify = true);
        await pair.Client.WriteAsync(new byte[] { 1, 2, 3 }).InTime();
        pair.ClientSocket.Shutdown(SocketShutdown.Send);

        byte[] buffer = new byte[3];
        await pair.Server.ReadExactlyAsync(buffer).InTime();
        Assert.Equal([1, 2, 3], buffer);
        await Assert.ThrowsAsync<IOException>(() => pair.Server.ReadAsync(buffer).InTime());
        await Assert.ThrowsAsync<IOException>(() => pair.Server.ReadAsync(buffer).InTime());
        await Assert.ThrowsAsync<IOException>(() => Limits.Blocking(() => pair.Server.Read(buffer)).InTime());
    }

    [Theory]
    [MemberData(nameof(OnOpenSsl))]
    public async Task A_FIN_without_a_required_close_notify_ends_an_empty_read_and_then_is_a_truncation(TlsMode mode, SslProtocols version)
    {
        await using TlsPair pair = await TlsPair.ConnectAsync(mode, version, tune: o => o.RequireCloseNotify = true);
        Task<int> empty = pair.Server.ReadAsync(Memory<byte>.Empty).AsTask();
        pair.ClientSocket.Shutdown(SocketShutdown.Send);

        try
        {
            Assert.Equal(0, await empty.InTime());
        }
        catch (IOException)
        {
            // A synchronous exception is equally correct.
        }

        await Assert.ThrowsAsync<IOException>(() => pair.Server.ReadAsync(new byte[1]).InTime());
    }

    [Theory]
    [MemberData(nameof(OnSslStream))]
    public async Task A_FIN_without_close_notify_is_an_end_to_SslStream(TlsMode mode, SslProtocols version)
    {
        await using TlsPair pair = await TlsPair.ConnectAsync(mode, version);
        pair.ClientSocket.Shutdown(SocketShutdown.Send);

        Assert.Equal(0, await pair.Server.ReadAsync(new byte[1]).InTime());
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task A_FIN_inside_a_record_is_an_error(TlsMode mode, SslProtocols version)
    {
        await using TlsPair pair = await TlsPair.ConnectAsync(mode, TlsMode.Stock, version);
        await pair.Client.WriteAsync(new byte[] { 1 }).InTime();
        Assert.Equal(1, await pair.Server.ReadAsync(new byte[1]).InTime());

        // The header of a data record of 100 bytes, and ten of its bytes.
        await pair.ServerSocket.SendAsync(new byte[] { 23, 3, 3, 0, 100, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 });
        pair.ServerSocket.Shutdown(SocketShutdown.Send);

        await Assert.ThrowsAnyAsync<IOException>(() => pair.Client.ReadAsync(new byte[1]).InTime());
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task A_reset_is_an_error_over_a_socket_error(TlsMode mode, SslProtocols version)
    {
        await using TlsPair pair = await TlsPair.ConnectAsync(mode, version);
        Task<int> reading = pair.Server.ReadAsync(new byte[1]).AsTask();
        pair.ClientSocket.LingerState = new LingerOption(true, 0);
        pair.ClientSocket.Dispose();

        IOException e = await Assert.ThrowsAnyAsync<IOException>(() => reading.InTime());
        Assert.Equal(SocketError.ConnectionReset, Assert.IsType<SocketException>(e.InnerException).SocketErrorCode);
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task Writing_to_a_peer_that_is_gone_is_an_error_over_a_socket_error(TlsMode mode, SslProtocols version)
    {
        await using TlsPair pair = await TlsPair.ConnectAsync(mode, version);
        pair.ClientSocket.LingerState = new LingerOption(true, 0);
        pair.ClientSocket.Dispose();

        IOException e = await Assert.ThrowsAnyAsync<IOException>(() => Task.Run(async () =>
        {
            while (true)
            {
                await pair.Server.WriteAsync(new byte[100_000]);
            }
        }).InTime());
        Assert.IsType<SocketException>(e.InnerException);
    }
}

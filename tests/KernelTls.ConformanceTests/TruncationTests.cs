using System.Net.Sockets;
using System.Security.Authentication;
using KernelTls.Tests;

namespace KernelTls.ConformanceTests;

/// <summary>
/// Tests an end without close_notify (RFC 8446, 6.1): an end of stream as on SslStream, which the stream can be asked about, or an error
/// if the options say so. An end inside a record is always an error.
/// </summary>
public class TruncationTests
{
    public static TheoryData<TlsMode, SslProtocols> All => Modes.All;

    public static TheoryData<TlsMode, SslProtocols> OnOpenSsl => Modes.AllOnOpenSsl;

    [Theory]
    [MemberData(nameof(All))]
    public async Task A_close_notify_is_an_end_of_stream_whatever_the_options_say(TlsMode mode, SslProtocols version)
    {
        await using TlsPair pair = await TlsPair.ConnectAsync(mode, version);
        await pair.Client.WriteAsync(new byte[] { 1 }).InTime();
        await pair.Client.ShutdownAsync().InTime();
        Assert.Equal(1, await pair.Server.ReadAsync(new byte[2]).InTime());
        Assert.Equal(0, await pair.Server.ReadAsync(new byte[2]).InTime());
        Assert.False(pair.Server is KtlsStream { EndedWithoutCloseNotify: true });
        await pair.Server.ShutdownAsync().InTime();
        Assert.Equal(0, await pair.Client.ReadAsync(new byte[2]).InTime());
    }

    /// <summary>
    /// Gets the number of bytes of a record's 105 that arrive: a part of its header, the header, and a part of its
    /// content.
    /// </summary>
    public static TheoryData<TlsMode, SslProtocols, int> Parts => Modes.AllWith(1, 4, 5, 6, 104);

    [Theory]
    [MemberData(nameof(OnOpenSsl))]
    public async Task An_end_without_close_notify_is_an_error_where_the_options_say_so(TlsMode mode, SslProtocols version)
    {
        await using TlsPair pair = await TlsPair.ConnectAsync(mode, version, tune: o => o.RequireCloseNotify = true);
        pair.ClientSocket.Shutdown(SocketShutdown.Send);

        await Assert.ThrowsAsync<IOException>(() => pair.Server.ReadAsync(new byte[1]).InTime());
        await Assert.ThrowsAsync<IOException>(() => Limits.Blocking(() => pair.Server.Read(new byte[1])).InTime());
        Assert.False(((KtlsStream)pair.Server).EndedWithoutCloseNotify);

        // The other half stays open.
        await pair.Server.WriteAsync(new byte[] { 4, 5 }).InTime("a write behind the error");
        await pair.Server.ShutdownAsync().InTime("the end of the other half");
        byte[] rest = new byte[3];
        Assert.Equal(2, await pair.Client.ReadAtLeastAsync(rest, 3, throwOnEndOfStream: false).InTime("the data and the end"));
        Assert.Equal(new byte[] { 4, 5, 0 }, rest);
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task An_end_without_close_notify_is_an_end_of_stream(TlsMode mode, SslProtocols version)
    {
        await using TlsPair pair = await TlsPair.ConnectAsync(mode, version);
        await pair.Client.WriteAsync(new byte[] { 1, 2, 3 }).InTime();
        pair.ClientSocket.Shutdown(SocketShutdown.Send);

        byte[] buffer = new byte[5000];
        Assert.Equal(3, await pair.Server.ReadAtLeastAsync(buffer, 3).InTime("the data in front of the end"));
        Assert.False(pair.Server is KtlsStream { EndedWithoutCloseNotify: true });
        Assert.Equal(0, await pair.Server.ReadAsync(buffer).InTime());
        Assert.Equal(Modes.OnOpenSsl.Contains(mode), pair.Server is KtlsStream { EndedWithoutCloseNotify: true });
        Assert.Equal(0, await pair.Server.ReadAsync(Memory<byte>.Empty).InTime());
        Assert.Equal(0, await Limits.Blocking(() => pair.Server.Read(buffer)).InTime());

        // The other half stays open.
        await pair.Server.WriteAsync(new byte[] { 4 }).InTime();
        Assert.Equal(1, await pair.Client.ReadAsync(buffer).InTime());
    }

    /// <summary>
    /// The peer closes its socket, and what this end sends afterwards is answered with a reset. The kernel reports the reset before the
    /// FIN that preceded it.
    /// </summary>
    [Theory]
    [MemberData(nameof(All))]
    public async Task An_end_that_writes_met_is_still_an_end_of_stream(TlsMode mode, SslProtocols version)
    {
        foreach (int writes in new[] { 1, 2 })
        {
            await using TlsPair pair = await TlsPair.ConnectAsync(mode, version);
            pair.ServerSocket.Dispose();
            await pair.Client.WriteAsync(new byte[1]).InTime("a write after the peer's FIN");
            Assert.True(pair.ClientSocket.Poll(Limits.Wait, SelectMode.SelectError), "the reset did not arrive");
            if (writes > 1)
            {
                await Assert.ThrowsAsync<IOException>(() => pair.Client.WriteAsync(new byte[1]).InTime("a write after the reset"));
            }

            Assert.Equal(0, await pair.Client.ReadAsync(new byte[5000]).InTime($"a read after {writes} writes"));
            Assert.Equal(0, await Limits.Blocking(() => pair.Client.Read(new byte[5000])).InTime("a second read"));
        }
    }

    [Theory]
    [MemberData(nameof(Parts))]
    public async Task An_end_inside_a_record_is_an_error_whatever_the_options_say(TlsMode mode, SslProtocols version, int part)
    {
        await using TlsPair pair = await TlsPair.ConnectAsync(mode, TlsMode.Stock, version);
        await pair.ServerSocket.SendAsync(new byte[] { 23, 3, 3, 0, 100 }.Concat(new byte[100]).Take(part).ToArray());
        pair.ServerSocket.Shutdown(SocketShutdown.Send);

        await Assert.ThrowsAnyAsync<IOException>(() => pair.Client.ReadAsync(new byte[1]).InTime());
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task A_reset_is_an_error_whatever_the_options_say(TlsMode mode, SslProtocols version)
    {
        await using TlsPair pair = await TlsPair.ConnectAsync(mode, version);
        pair.ClientSocket.LingerState = new LingerOption(true, 0);
        pair.ClientSocket.Dispose();

        await Assert.ThrowsAnyAsync<IOException>(() => pair.Server.ReadAsync(new byte[1]).InTime());
    }
}

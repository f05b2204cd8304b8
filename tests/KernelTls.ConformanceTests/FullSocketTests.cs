using System.Net.Sockets;
using System.Runtime.InteropServices;
using System.Security.Authentication;
using KernelTls.Tests;

namespace KernelTls.ConformanceTests;

/// <summary>Runs alone, because for a moment the whole process cannot open descriptors.</summary>
[CollectionDefinition(nameof(FullSocketTests), DisableParallelization = true)]
public class WithoutDescriptors;

/// <summary>
/// Tests that a send that waits for space needs no resources that the process may have exhausted, and holds none that
/// outlive its socket.
/// </summary>
[Collection(nameof(FullSocketTests))]
public partial class FullSocketTests
{
    private const int DescriptorLimit = 7; // RLIMIT_NOFILE
    private const int StartedThreads = 16;

    /// <summary>Gets the modes, and whether to send a file.</summary>
    public static TheoryData<TlsMode, bool> EveryModeAndFile => Modes.With(false, true);

    [Theory]
    [MemberData(nameof(EveryModeAndFile))]
    public async Task A_send_waits_for_room_where_the_process_has_no_descriptor_left(TlsMode mode, bool file)
    {
        using PatternFile source = new(TlsPair.MoreThanFits);
        await using TlsPair other = await TlsPair.ConnectAsync(mode, SslProtocols.Tls13);
        await using TlsPair pair = await TlsPair.ConnectAsync(mode, SslProtocols.Tls13);
        await ExchangeAsync(other);
        pair.ShrinkBuffers();
        await StartThreadsAsync();
        Task sending;
        ThreadPool.GetMaxThreads(out int workers, out int completions);
        Assert.Equal(0, getrlimit(DescriptorLimit, out ResourceLimit usual));
        Assert.True(ThreadPool.SetMaxThreads(StartedThreads, completions));
        Assert.Equal(0, setrlimit(DescriptorLimit, usual with { Soft = 0 }));
        try
        {
            sending = SendAsync(pair.Server, source, file);
            await sending.StaysPending();
            await ExchangeAsync(other);
        }
        finally
        {
            Assert.Equal(0, setrlimit(DescriptorLimit, usual));
            Assert.True(ThreadPool.SetMaxThreads(workers, completions));
        }

        await Pattern.ReceiveAsync(pair.Client, TlsPair.MoreThanFits).InTime("what the full socket took");
        await sending.InTime("the send that waited");
        await ExchangeAsync(pair);
    }

    /// <summary>
    /// The stream is not disposed before the peer has seen the end: only the socket's own descriptor may keep the
    /// connection open.
    /// </summary>
    [Theory]
    [MemberData(nameof(EveryModeAndFile))]
    public async Task Aborting_the_socket_resets_the_connection_under_a_send_that_waits(TlsMode mode, bool file)
    {
        using PatternFile source = new(TlsPair.MoreThanFits);
        await using TlsPair pair = await TlsPair.ConnectAsync(mode, SslProtocols.Tls13);
        pair.ShrinkBuffers();
        Task sending = SendAsync(pair.Server, source, file);
        await sending.StaysPending();

        await Limits.Blocking(() => pair.ServerSocket.Close(0)).InTime("the socket to be closed");

        Exception failure = await Assert.ThrowsAnyAsync<Exception>(() => sending.InTime("the send on the aborted socket"));
        Assert.True(failure is IOException or SocketException or ObjectDisposedException, failure.ToString());
        IOException reset = await Assert.ThrowsAsync<IOException>(
            () => Pattern.ReceiveAsync(pair.Client, long.MaxValue).InTime("the reset"));
        Assert.Equal(SocketError.ConnectionReset, Assert.IsType<SocketException>(reset.InnerException).SocketErrorCode);
    }

    private static Task SendAsync(Stream stream, PatternFile source, bool file) =>
        file && stream is KtlsStream ktls
            ? ktls.SendFileAsync(source.Handle, 0, TlsPair.MoreThanFits).AsTask()
            : stream.WriteAsync(Pattern.Take(TlsPair.MoreThanFits)).AsTask();

    /// <summary>
    /// Starts the thread pool's threads in advance, because a thread cannot start without a descriptor either, and the pool
    /// does not recover from that.
    /// </summary>
    private static async Task StartThreadsAsync()
    {
        ThreadPool.GetMinThreads(out int workers, out int completions);
        Assert.True(ThreadPool.SetMinThreads(Math.Max(workers, StartedThreads), completions));
        try
        {
            using Barrier barrier = new(StartedThreads);
            await Task.WhenAll(Enumerable.Range(0, StartedThreads).Select(_ => Task.Run(() =>
                Assert.True(barrier.SignalAndWait(Limits.Wait), "the thread pool did not start as many threads")))).InTime();
        }
        finally
        {
            Assert.True(ThreadPool.SetMinThreads(workers, completions));
        }
    }

    private static async Task ExchangeAsync(TlsPair pair)
    {
        await pair.Client.WriteAsync(Pattern.At(0, 100)).InTime("a write");
        await Pattern.ReceiveAsync(pair.Server, 100).InTime("what was written");
    }

    [LibraryImport("libc")]
    private static partial int getrlimit(int resource, out ResourceLimit limit);

    [LibraryImport("libc")]
    private static partial int setrlimit(int resource, in ResourceLimit limit);

    private record struct ResourceLimit(nuint Soft, nuint Hard);
}

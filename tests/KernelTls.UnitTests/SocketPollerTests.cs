using System.Runtime.InteropServices;
using KernelTls.Interop;
using KernelTls.IO;
using KernelTls.Offload;
using KernelTls.Tests;

namespace KernelTls.UnitTests;

/// <summary>Runs alone, because for a moment the whole process cannot open descriptors.</summary>
[CollectionDefinition(nameof(SocketPollerTests), DisableParallelization = true)]
public class WithoutDescriptors;

[Collection(nameof(SocketPollerTests))]
public partial class SocketPollerTests
{
    private const int DescriptorLimit = 7; // RLIMIT_NOFILE

    [Fact]
    public void A_poller_for_which_there_was_no_descriptor_is_made_later()
    {
        Assert.Equal(KtlsFallbackReason.None, Platform.Current.DirectReason);
        Assert.InRange(new SocketPoller().Descriptor, 0, int.MaxValue); // loads everything in advance
        Assert.Equal(0, getrlimit(DescriptorLimit, out ResourceLimit usual));

        SocketPoller poller = new();
        Exception? failure;
        Assert.Equal(0, setrlimit(DescriptorLimit, usual with { Soft = 0 }));
        try
        {
            failure = Record.Exception(() => poller.Descriptor);
        }
        finally
        {
            Assert.Equal(0, setrlimit(DescriptorLimit, usual));
        }

        Assert.IsType<IOException>(failure);
        int made = poller.Descriptor;
        Assert.InRange(made, 0, int.MaxValue);
        Assert.Equal(made, poller.Descriptor);
    }

    /// <summary>Otherwise the end of each connection would wake the poller's thread without need.</summary>
    [Fact]
    public async Task A_watch_that_is_disposed_leaves_the_poller()
    {
        Assert.Equal(KtlsFallbackReason.None, Platform.Current.DirectReason);
        using SocketPair sockets = await SocketPair.ConnectAsync();
        PeerShutdownMonitor monitor = new(sockets.Client.SafeHandle, static () => { });
        Assert.True(IsWatched());

        monitor.Dispose();
        Assert.False(IsWatched());
        monitor.Dispose();

        // proc(5): one line per descriptor of an epoll set.
        bool IsWatched() => File.ReadLines($"/proc/self/fdinfo/{SocketPoller.Shared.Descriptor}")
            .Any(l => l.StartsWith("tfd:", StringComparison.Ordinal) && l.Split(' ', StringSplitOptions.RemoveEmptyEntries)[1] == $"{sockets.Client.Handle}");
    }

    /// <summary>
    /// The AsyncLocals of the first connection's caller (logging scopes, activities) are neither kept alive by the
    /// poller nor visible to the reports of other connections.
    /// </summary>
    [Fact]
    public async Task The_poller_s_thread_has_nothing_of_whoever_started_it()
    {
        Assert.Equal(KtlsFallbackReason.None, Platform.Current.DirectReason);
        AsyncLocal<string?> scope = new() { Value = "the first connection" };
        SocketPoller poller = new();
        using SocketPair sockets = await SocketPair.ConnectAsync();
        TaskCompletionSource<string?> seen = new(TaskCreationOptions.RunContinuationsAsynchronously);
        long token = poller.Register(_ => seen.TrySetResult(scope.Value));
        int descriptor = (int)sockets.Client.SafeHandle.DangerousGetHandle();
        Assert.Equal(0, KtlsNative.KtlsNative_PollerArm(poller.Descriptor, descriptor, NativeWait.Writable, token));

        Assert.Null(await seen.Task.InTime("a report that the socket is writable"));
        Assert.Equal(0, KtlsNative.KtlsNative_PollerDisarm(poller.Descriptor, descriptor));
    }

    [LibraryImport("libc")]
    private static partial int getrlimit(int resource, out ResourceLimit limit);

    [LibraryImport("libc")]
    private static partial int setrlimit(int resource, in ResourceLimit limit);

    private record struct ResourceLimit(nuint Soft, nuint Hard);
}

using System.Diagnostics.Tracing;
using System.Globalization;
using System.Runtime.CompilerServices;
using System.Security.Authentication;
using KernelTls.Tests;

namespace KernelTls.ConformanceTests;

/// <summary>Runs alone, because the counters are those of the process.</summary>
[CollectionDefinition(nameof(StockCounterTests), DisableParallelization = true)]
public class AloneInTheProcess;

/// <summary>
/// Tests that the counters of the event source System.Net.Security include the connections of this library.
/// </summary>
[Collection(nameof(StockCounterTests))]
public class StockCounterTests
{
    public static TheoryData<TlsMode, SslProtocols> All => Modes.All;

    [Theory]
    [MemberData(nameof(All))]
    public async Task Connections_are_counted_while_they_are_open(TlsMode mode, SslProtocols version)
    {
        string ofVersion = version == SslProtocols.Tls12 ? "tls12-sessions-open" : "tls13-sessions-open";
        using Counters counters = new();
        double open = await counters.NextAsync("all-tls-sessions-open");
        double openOfVersion = await counters.NextAsync(ofVersion);
        double total = await counters.NextAsync("total-tls-handshakes");

        await using (TlsPair first = await TlsPair.ConnectAsync(mode, version))
        {
            await using TlsPair second = await TlsPair.ConnectAsync(mode, version);
            await counters.ReachAsync("all-tls-sessions-open", open + 4);
            await counters.ReachAsync(ofVersion, openOfVersion + 4);
            await counters.ReachAsync("total-tls-handshakes", total + 4);
        }

        await counters.ReachAsync("all-tls-sessions-open", open);
        await counters.ReachAsync(ofVersion, openOfVersion);
        await counters.ReachAsync("current-tls-handshakes", 0);
    }

    /// <summary>An application may close only the socket.</summary>
    [Theory]
    [MemberData(nameof(All))]
    public async Task A_stream_that_is_never_disposed_is_counted_until_it_is_collected(TlsMode mode, SslProtocols version)
    {
        using Counters counters = new();
        double open = await counters.NextAsync("all-tls-sessions-open");

        (WeakReference client, WeakReference server) = await AbandonAsync(mode, version, () => counters.ReachAsync("all-tls-sessions-open", open + 2));
        for (int i = 0; i < 20 && (client.IsAlive || server.IsAlive); i++)
        {
            GC.Collect();
            GC.WaitForPendingFinalizers();
            await Task.Delay(50);
        }

        Assert.False(client.IsAlive || server.IsAlive, "a stream whose socket is closed is still referenced");
        await counters.ReachAsync("all-tls-sessions-open", open);
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    private static async Task<(WeakReference Client, WeakReference Server)> AbandonAsync(TlsMode mode, SslProtocols version, Func<Task> whileOpen)
    {
        TlsPair pair = await TlsPair.ConnectAsync(mode, version);
        await whileOpen();
        pair.ClientSocket.Dispose();
        pair.ServerSocket.Dispose();
        return (new WeakReference(pair.Client), new WeakReference(pair.Server));
    }

    private sealed class Counters : EventListener
    {
        private readonly Lock _lock = new();
        private readonly List<(string Name, Func<double, bool> Is, TaskCompletionSource<double> Seen)> _awaited = [];

        public Task<double> NextAsync(string name) => AwaitAsync(name, _ => true).InTime($"a value of {name}");

        public async Task ReachAsync(string name, double value)
        {
            double last = double.NaN;
            Task reaching = AwaitAsync(name, v => (last = v) == value);
            await Task.WhenAny(reaching, Task.Delay(Limits.Wait));
            Assert.True(reaching.IsCompleted, $"Waited {Limits.Wait.TotalSeconds} s for {name} to be {value}; it is {last}");
        }

        protected override void OnEventSourceCreated(EventSource eventSource)
        {
            if (eventSource.Name == "System.Net.Security")
            {
                EnableEvents(
                    eventSource, EventLevel.Informational, EventKeywords.All, new Dictionary<string, string?> { ["EventCounterIntervalSec"] = "0.1" });
            }
        }

        protected override void OnEventWritten(EventWrittenEventArgs eventData)
        {
            if (eventData.EventName != "EventCounters" || eventData.Payload?[0] is not IDictionary<string, object> values
                || !values.TryGetValue("Mean", out object? mean))
            {
                return;
            }

            double value = Convert.ToDouble(mean, CultureInfo.InvariantCulture);
            lock (_lock)
            {
                _awaited.RemoveAll(a => a.Name == (string)values["Name"] && a.Is(value) && a.Seen.TrySetResult(value));
            }
        }

        private Task<double> AwaitAsync(string name, Func<double, bool> condition)
        {
            TaskCompletionSource<double> seen = new(TaskCreationOptions.RunContinuationsAsynchronously);
            lock (_lock)
            {
                _awaited.Add((name, condition, seen));
            }

            return seen.Task;
        }
    }
}

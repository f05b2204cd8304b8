using System.Diagnostics.Tracing;
using System.Globalization;
using System.Security.Authentication;
using KernelTls.Tests;
using Microsoft.Diagnostics.NETCore.Client;
using Microsoft.Diagnostics.Tracing;

namespace KernelTls.Tool.Tests;

/// <summary>Tests the meter of a process as dotnet-counters reads it: by EventPipe, from outside.</summary>
public class CountersTests
{
    private const string Metrics = "System.Diagnostics.Metrics";
    private const long TimeSeriesValues = 2;

    [Fact]
    public async Task The_meter_by_EventPipe()
    {
        string[] wanted = ["kernel_tls.connections", "kernel_tls.handshake.duration"];
        HashSet<string> seen = [];
        TaskCompletionSource all = new(TaskCreationOptions.RunContinuationsAsynchronously);
        EventPipeProvider provider = new(Metrics, EventLevel.Informational, TimeSeriesValues, new Dictionary<string, string>
        {
            ["SessionId"] = Guid.NewGuid().ToString(),
            ["Metrics"] = "KernelTls",
            ["RefreshInterval"] = "1",
            ["MaxTimeSeries"] = "100",
            ["MaxHistograms"] = "100",
        });
        using EventPipeSession session = await new DiagnosticsClient(Environment.ProcessId)
            .StartEventPipeSessionAsync([provider], requestRundown: false, circularBufferMB: 16, CancellationToken.None)
            .InTime("the session");
        Task listening = Task.Factory.StartNew(
            () =>
            {
                using EventPipeEventSource source = new(session.EventStream);
                source.Dynamic.All += e =>
                {
                    if (e.ProviderName == Metrics && e.PayloadByName("meterName") is "KernelTls"
                        && e.EventName.EndsWith("ValuePublished", StringComparison.Ordinal)
                        && Text(e, "tags").Contains("kernel_tls.role=client", StringComparison.Ordinal))
                    {
                        seen.Add(Text(e, "instrumentName"));
                        if (seen.IsSupersetOf(wanted))
                        {
                            all.TrySetResult();
                        }
                    }
                };
                source.Process();
            },
            CancellationToken.None,
            TaskCreationOptions.LongRunning,
            TaskScheduler.Default);

        await using (await TlsPair.ConnectAsync(TlsMode.DirectOpenSsl, SslProtocols.Tls13))
        {
            await all.Task.InTime($"{string.Join(" and ", wanted)} of the meter");
        }

        await session.StopAsync(CancellationToken.None).InTime("the end of the session");
        await listening.InTime("the last event");
    }

    private static string Text(TraceEvent e, string name) => Convert.ToString(e.PayloadByName(name), CultureInfo.InvariantCulture) ?? "";
}

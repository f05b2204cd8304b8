using System.Collections.Concurrent;
using System.Diagnostics.Metrics;
using System.Net.Security;
using System.Security.Authentication;
using KernelTls.Tests;
using Microsoft.AspNetCore.Builder;
using Microsoft.Extensions.DependencyInjection;

namespace KernelTls.AspNetCore.Tests;

/// <summary>Tests Kestrel's own metrics of handshakes.</summary>
public class MetricsTests
{
    public static TheoryData<TlsMode> All => [.. Modes.Every];

    [Theory]
    [MemberData(nameof(All))]
    public async Task Handshakes_are_measured(TlsMode mode)
    {
        ConcurrentQueue<string> measured = new();
        TaskCompletionSource ended = new(TaskCreationOptions.RunContinuationsAsynchronously);
        int handshakes = 0;
        using MeterListener listener = new();
        listener.InstrumentPublished = (instrument, l) =>
        {
            if (instrument.Meter.Name == "Microsoft.AspNetCore.Server.Kestrel")
            {
                l.EnableMeasurementEvents(instrument);
            }
        };
        listener.SetMeasurementEventCallback<long>((i, value, _, _) => Note(i, $"{value}", []));
        listener.SetMeasurementEventCallback<double>((i, _, tags, _) => Note(i, "", tags));
        listener.Start();
        await using (Server server = await Server.StartAsync(mode, builder: builder => builder.Services.AddMetrics()))
        {
            await using (await server.ConnectAsync())
            {
            }

            await Assert.ThrowsAsync<AuthenticationException>(() => server.ConnectAsync(configure: o => o.TargetHost = "elsewhere.test"));
            using (await server.ConnectSocketAsync())
            {
            }

            // A server that stops accepts no more connections.
            await ended.Task.InTime("the server to report the end of three handshakes");
        }

        Assert.Equal(3, measured.Count(m => m == "kestrel.active_tls_handshakes 1"));
        Assert.Equal(3, measured.Count(m => m == "kestrel.active_tls_handshakes -1"));
        foreach ((string instrument, string tag) in new[]
        {
            ("kestrel.tls_handshake.duration", "tls.protocol.version=1.3"),
            ("kestrel.tls_handshake.duration", "error.type="),
            ("kestrel.connection.duration", "tls.protocol.version=1.3"),
            ("kestrel.connection.duration", "error.type=tls_handshake_failed"),
        })
        {
            Assert.True(
                measured.Any(m => m.StartsWith(instrument, StringComparison.Ordinal) && m.Contains(tag, StringComparison.Ordinal)),
                $"no {instrument} with {tag}; measured: {string.Join(" | ", measured)}");
        }

        void Note(Instrument instrument, string value, ReadOnlySpan<KeyValuePair<string, object?>> tags)
        {
            measured.Enqueue($"{instrument.Name} {value}{string.Join(' ', tags.ToArray().Select(t => $"{t.Key}={t.Value}"))}");
            if (instrument.Name == "kestrel.tls_handshake.duration" && Interlocked.Increment(ref handshakes) == 3)
            {
                ended.SetResult();
            }
        }
    }
}

using System.Diagnostics.Tracing;
using System.Net.Security;
using System.Security.Authentication;
using KernelTls.Tests;

namespace KernelTls.ConformanceTests;

/// <summary>
/// Tests that the runtime's event source System.Net.Security reports handshakes and open connections as on SslStream.
/// </summary>
public class StockEventTests
{
    public static TheoryData<TlsMode, SslProtocols, bool> All => Modes.AllWith(true, false);

    public static TheoryData<TlsMode, SslProtocols> Modes_and_versions => Modes.All;

    [Theory]
    [MemberData(nameof(All))]
    public async Task A_handshake_starts_and_stops_or_fails(TlsMode mode, SslProtocols version, bool fails)
    {
        string[] events = await SideBySide.RunAsync(mode, async each =>
        {
            List<string> client = [];
            List<string> server = [];
            using Listener listener = new();
            await using Meeting meeting = await new Meeting(each, each, version)
            {
                ClientHandshake = s => Collecting(client, () => s.HandshakeAsClientAsync(Handshakes.ClientOptions(version))),
                ServerHandshake = s => Collecting(server, () => s.HandshakeAsServerAsync(Handshakes.ServerOptions(version))),
                ClientValidation = (_, _, _, _) => !fails,
            }.RunAsync();
            return (string[])[.. client, "|", .. fails ? [] : server];
        });
        Assert.Contains("HandshakeStart False localhost", events);
        Assert.Contains(fails ? "HandshakeStop 0" : $"HandshakeStop {(int)version}", events);
    }

    private static async Task Collecting(List<string> events, Func<Task> shake)
    {
        Listener.Flow.Value = events;
        await shake();
    }

    /// <summary>Collects the events written in the asynchronous flow of one end.</summary>
    private sealed class Listener : EventListener
    {
        public static AsyncLocal<List<string>?> Flow { get; } = new();

        protected override void OnEventSourceCreated(EventSource eventSource)
        {
            if (eventSource.Name == "System.Net.Security")
            {
                EnableEvents(eventSource, EventLevel.Informational);
            }
        }

        protected override void OnEventWritten(EventWrittenEventArgs eventData)
        {
            if (eventData.EventName is "HandshakeStart" or "HandshakeStop" or "HandshakeFailed" && Flow.Value is { } events)
            {
                // The duration and the text of the failure differ.
                object?[] payload = eventData.EventName == "HandshakeFailed" ? [eventData.Payload![0]] : [.. eventData.Payload!];
                events.Add($"{eventData.EventName} {string.Join(' ', payload)}");
            }
        }
    }
}

using System.Diagnostics.Tracing;
using KernelTls.Tests;

namespace KernelTls.AspNetCore.Tests;

/// <summary>Tests that a client that disconnects after its response is not a failed connection.</summary>
public class GoodClientTests
{
    private static readonly string[] s_ways = ["--http1.1", "--http2"];

    public static TheoryData<TlsMode, string> OnOpenSsl =>
        [.. from mode in Modes.OnOpenSsl from way in s_ways select new TheoryDataRow<TlsMode, string>(mode, way)];

    [Theory]
    [MemberData(nameof(OnOpenSsl))]
    public async Task A_client_that_leaves_after_its_answer_has_not_failed(TlsMode mode, string way)
    {
        using TemporaryDirectory directory = new();
        using Failures failures = new();
        await using (Server server = await Server.StartAsync(mode))
        {
            using ExternalProgram curl = ExternalProgram.Start(
                "curl", directory.FullName, way, "--silent", "--show-error", "--cacert", Certificates.WriteAuthority(directory.FullName),
                $"https://localhost:{server.Https.Port}/connection", "--resolve", $"localhost:{server.Https.Port}:127.0.0.1");
            await curl.SucceedAsync();
            await server.StopAsync();
        }

        Assert.Empty(failures.Seen);
    }

    private sealed class Failures : EventListener
    {
        public System.Collections.Concurrent.ConcurrentQueue<string> Seen { get; } = new();

        protected override void OnEventSourceCreated(EventSource eventSource)
        {
            if (eventSource.Name == "KernelTls")
            {
                EnableEvents(eventSource, EventLevel.Warning);
            }
        }

        protected override void OnEventWritten(EventWrittenEventArgs eventData)
        {
            if (eventData.EventName == "ConnectionFailed")
            {
                Seen.Enqueue($"{eventData.Payload![0]}: {eventData.Payload[1]}");
            }
        }
    }
}

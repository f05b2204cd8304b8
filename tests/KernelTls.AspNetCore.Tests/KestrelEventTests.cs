using System.Collections.Concurrent;
using System.Diagnostics.Tracing;
using System.Net;
using System.Net.Security;
using System.Net.Sockets;
using System.Security.Authentication;
using KernelTls.AspNetCore.Internals;
using KernelTls.Tests;
using Microsoft.AspNetCore.Hosting;
using Microsoft.AspNetCore.Server.Kestrel.Https;
using Microsoft.Extensions.Logging;

namespace KernelTls.AspNetCore.Tests;

/// <summary>Tests handshakes in Kestrel's own events, counters and log, compared with the stock server.</summary>
[Trait("loop", "outer-kernel")]
public class KestrelEventTests
{
    private static readonly string[] s_counters = ["total-tls-handshakes", "current-tls-handshakes", "failed-tls-handshakes"];

    public static TheoryData<TlsMode> All => [.. Modes.Every];

    public static TheoryData<TlsMode> OnOpenSsl => [.. Modes.OnOpenSsl];

    [Theory]
    [MemberData(nameof(All))]
    public async Task Events_and_log_tell_the_same(TlsMode mode)
    {
        string[] told = await SideBySide.RunAsync(mode, async each =>
        {
            using Listener listener = new();
            ConcurrentQueue<Server.Log.Entry> log = new();
            string[] events;
            await using (Server server = await Server.StartAsync(each, https =>
            {
                https.SslProtocols = SslProtocols.Tls12 | SslProtocols.Tls13;
                https.ServerCertificateSelector = (_, _) => Certificates.Ecdsa;
                https.HandshakeTimeout = TimeSpan.FromSeconds(Cell.IsLab ? 10 : 2);
            }))
            {
                await using (await server.ConnectAsync(configure: o => o.ApplicationProtocols = [SslApplicationProtocol.Http2]))
                {
                }

                await EndedAsync(server, 1);
                using (Socket gone = await server.ConnectSocketAsync())
                {
                    await gone.SendAsync("GET / HTTP/1.1\r\n\r\n"u8.ToArray()).InTime();
                }

                await EndedAsync(server, 2);
                using Socket silent = await server.ConnectSocketAsync();
                await EndedAsync(server, 3);
                events = [.. listener.Events, .. server.Events.Entries.Where(e => e.Category == KestrelInternals.HttpsCategory).Select(Describe)];
            }

            return events;
        });
        Assert.Equal(
            [
                "TlsHandshakeStart Tls12, Tls13",
                "TlsHandshakeStop Tls13 h2 localhost",
                "TlsHandshakeStart Tls12, Tls13",
                "TlsHandshakeFailed",
                "TlsHandshakeStop   ",
                "TlsHandshakeStart Tls12, Tls13",
                "TlsHandshakeFailed",
                "TlsHandshakeStop   ",
                "Debug 3 HttpsConnectionEstablished Connection * established using the following protocol: Tls13",
                "Debug 1 AuthenticationFailed Failed to authenticate HTTPS connection.",
                "Debug 2 AuthenticationTimedOut Authentication of the HTTPS connection timed out.",
            ],
            told);
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task Counters_count_and_come_back(TlsMode mode)
    {
        using Listener listener = new();
        await using Server server = await Server.StartAsync(mode);
        await using SslStream first = await server.ConnectAsync();
        IReadOnlyDictionary<string, double> before = await listener.CountersAsync();
        await using SslStream second = await server.ConnectAsync();
        foreach (byte[] sent in new byte[][] { [], [1, 2, 3, 4, 5, 6] })
        {
            using Socket failing = await server.ConnectSocketAsync();
            await failing.SendAsync(sent).InTime();
        }

        await EndedAsync(server, 2);
        IReadOnlyDictionary<string, double> after = await listener.CountersAsync();

        Assert.Equal([3, 0, 2], s_counters.Select(c => after[c] - before[c]));
    }

    /// <summary>
    /// A handshake that ends before its options are known also has a start, which the stock server omits.
    /// </summary>
    [Theory]
    [MemberData(nameof(All))]
    public async Task A_handshake_without_options_is_balanced(TlsMode mode)
    {
        if (!Modes.OnOpenSsl.Contains(mode))
        {
            Assert.DoesNotContain(mode, Modes.OnOpenSsl);
            return;
        }

        using Listener listener = new();
        await using Server server = await Server.StartAsync(
            mode,
            options => options.Listen(IPAddress.Loopback, 0, endpoint => endpoint.UseHttps(
                new TlsHandshakeCallbackOptions { OnConnection = _ => throw new AuthenticationException("on purpose") })),
            configure: null);

        await Record.ExceptionAsync(() => server.ConnectAsync());
        await EndedAsync(server, 1);

        Assert.Equal(["TlsHandshakeStart None", "TlsHandshakeFailed", "TlsHandshakeStop   "], listener.Events);
    }

    /// <summary>
    /// An exception of the application during OpenSSL's handshake ends a handshake that has started; the stock server
    /// never ends it.
    /// </summary>
    [Theory]
    [MemberData(nameof(OnOpenSsl))]
    public async Task A_handshake_in_which_the_application_fails_is_balanced(TlsMode mode)
    {
        using Listener listener = new();
        await using Server server = await Server.StartAsync(
            mode, https => https.ServerCertificateSelector = (_, _) => throw new InvalidOperationException("on purpose"));
        server.FailsOnPurpose = true;

        await Record.ExceptionAsync(() => server.ConnectAsync());
        await EndedAsync(server, 1);

        Assert.Equal(["TlsHandshakeStart None", "TlsHandshakeFailed", "TlsHandshakeStop   "], listener.Events);
    }

    private static async Task EndedAsync(Server server, int connections)
    {
        using PeriodicTimer timer = new(TimeSpan.FromMilliseconds(20));
        for (long deadline = Environment.TickCount64 + (long)Limits.Wait.TotalMilliseconds;
            server.Events.Entries.Count(e => e.Id.Name == "ConnectionStop") < connections;)
        {
            Assert.True(Environment.TickCount64 < deadline, $"Waited {Limits.Wait.TotalSeconds} s for {connections} connections to stop.");
            await timer.WaitForNextTickAsync();
        }
    }

    private static string Describe(Server.Log.Entry entry)
    {
        string message = System.Text.RegularExpressions.Regex.Replace(entry.Message, "Connection [0-9A-V]{13}", "Connection *");
        return $"{entry.Level} {entry.Id.Id} {entry.Id.Name} {message}";
    }

    /// <summary>
    /// Collects events of handshakes, without the connections' identifiers, and counters four times a second.
    /// </summary>
    private sealed class Listener : EventListener
    {
        private readonly ConcurrentQueue<string> _events = new();
        private readonly ConcurrentDictionary<string, double> _counters = new();
        private readonly SemaphoreSlim _counted = new(0);

        public string[] Events => [.. _events];

        /// <summary>
        /// Returns the counters after the next two rounds. The first of these may have begun already.
        /// </summary>
        public async Task<IReadOnlyDictionary<string, double>> CountersAsync()
        {
            while (_counted.Wait(0))
            {
            }

            await _counted.WaitAsync().InTime("a round of the counters");
            await _counted.WaitAsync().InTime("another round of the counters");
            return _counters.ToDictionary();
        }

        protected override void OnEventSourceCreated(EventSource eventSource)
        {
            if (eventSource.Name == "Microsoft-AspNetCore-Server-Kestrel")
            {
                EnableEvents(
                    eventSource, EventLevel.Informational, EventKeywords.All, new Dictionary<string, string?> { ["EventCounterIntervalSec"] = "0.25" });
            }
        }

        protected override void OnEventWritten(EventWrittenEventArgs eventData)
        {
            if (eventData.EventName == "EventCounters")
            {
                IDictionary<string, object> counter = (IDictionary<string, object>)eventData.Payload![0]!;
                string name = (string)counter["Name"];
                if (s_counters.Contains(name))
                {
                    _counters[name] = (double)counter["Mean"];
                    if (name == s_counters[^1])
                    {
                        _counted.Release();
                    }
                }
            }
            else if (eventData.EventName!.StartsWith("TlsHandshake", StringComparison.Ordinal))
            {
                _events.Enqueue($"{eventData.EventName} {string.Join(' ', eventData.Payload!.Skip(1))}".Trim() is "TlsHandshakeStop"
                    ? "TlsHandshakeStop   "
                    : $"{eventData.EventName} {string.Join(' ', eventData.Payload!.Skip(1))}".TrimEnd());
            }
        }
    }
}

using System.Collections.Concurrent;
using System.Diagnostics.Tracing;
using System.Net.Sockets;
using KernelTls.Diagnostics;
using KernelTls.Interop;
using KernelTls.IO;
using KernelTls.Tests;

namespace KernelTls.UnitTests;

[Collection(nameof(EventSourceTests))]
[CollectionDefinition(nameof(EventSourceTests), DisableParallelization = true)]
public class EventSourceTests
{
    [Fact]
    public async Task A_fallback_is_an_event_with_its_reason()
    {
        using Listener listener = new(EventLevel.Warning);
        await using KtlsStream stream = new(new NoSocket(), false, new KtlsOptions { Mode = KtlsMode.Disabled, Fallback = KtlsFallback.OpenSsl });

        await Assert.ThrowsAnyAsync<IOException>(() => stream.AuthenticateAsClientAsync("localhost"));

        EventWrittenEventArgs written = Assert.Single(listener.Events, e => e.EventName == "Fallback");
        Assert.Equal([false, "NotSocketStream", $"The inner stream is a {typeof(NoSocket).FullName}.", ""], written.Payload!);
        Assert.Equal(EventLevel.Warning, written.Level);
    }

    /// <summary>Without kernel TLS that is the reason, and the stream is why OpenSSL does not use the socket.</summary>
    [Fact]
    public async Task A_stream_in_the_way_is_named_with_or_without_kernel_TLS()
    {
        using Listener listener = new(EventLevel.Warning);
        await using KtlsStream stream = new(new Generic<string>(), false, new KtlsOptions { Mode = KtlsMode.Preferred, Fallback = KtlsFallback.OpenSsl });

        await Assert.ThrowsAnyAsync<IOException>(() => stream.AuthenticateAsClientAsync("localhost"));

        EventWrittenEventArgs written = Assert.Single(listener.Events, e => e.EventName == "Fallback");
        KtlsPlatform platform = KtlsPlatform.Probe();
        Assert.Equal($"{(platform.IsSupported ? KtlsFallbackReason.NotSocketStream : platform.NotSupportedReason)}", written.Payload![1]);
        string detail = Assert.IsType<string>(written.Payload[2]);
        Assert.EndsWith($"The inner stream is a {typeof(Generic<>).FullName}.", detail, StringComparison.Ordinal);
        Assert.Equal(!platform.IsSupported, detail.Contains("OpenSSL does not use the socket either: NotSocketStream.", StringComparison.Ordinal));
    }

    [Fact]
    public async Task Not_asking_for_kernel_TLS_is_no_event()
    {
        using Listener listener = new(EventLevel.Verbose);
        await using KtlsStream stream = new(new NoSocket(), false, new KtlsOptions { Mode = KtlsMode.Disabled });

        await Assert.ThrowsAnyAsync<IOException>(() => stream.AuthenticateAsClientAsync("localhost"));

        Assert.DoesNotContain(listener.Events, e => e.EventName == "Fallback");
    }

    [Fact]
    public void Nothing_is_written_while_nobody_listens()
    {
        Listener listener = new(EventLevel.Warning);
        listener.DisableEvents(KtlsEventSource.Log);
        Assert.False(KtlsEventSource.Log.IsEnabled());

        KtlsEventSource.Log.Fallback(true, KtlsFallbackReason.NotTcp, "");
        KtlsEventSource.Log.HandshakeFailed(true, new IOException("no"));

        Assert.Empty(listener.Events);
        listener.Dispose();
    }

    [Fact]
    public async Task A_handshake_is_an_event_with_what_it_came_to()
    {
        using Listener listener = new(EventLevel.Informational);

        await using TlsPair pair = await TlsPair.ConnectAsync(
            TlsMode.DirectOpenSsl, System.Security.Authentication.SslProtocols.Tls13);

        EventWrittenEventArgs client = Assert.Single(
            listener.Events, e => e.EventName == "HandshakeCompleted" && e.Payload![0] is false);
        Assert.Equal("Tls13", client.Payload![1]);
        Assert.Equal(
            ["OpenSsl", "DisabledByMode", "OpenSsl", "DisabledByMode"], client.Payload.Skip(3).Take(4).Cast<string>());
    }

    [Fact]
    public async Task A_failed_handshake_is_an_event_with_its_exception()
    {
        using Listener listener = new(EventLevel.Warning);
        await using TlsPair pair = await TlsPair.CreateAsync(TlsMode.DirectOpenSsl, TlsMode.Stock);
        pair.ServerSocket.Dispose();

        await Assert.ThrowsAnyAsync<IOException>(() => pair.Client.HandshakeAsClientAsync(Handshakes.ClientOptions(default)));

        EventWrittenEventArgs written = Assert.Single(listener.Events, e => e.EventName == "HandshakeFailed");
        Assert.Equal(typeof(IOException).FullName, written.Payload![1]);
    }

    [Fact]
    public async Task An_option_that_the_kernel_refuses_is_an_event()
    {
        using Listener listener = new(EventLevel.Warning);
        using SocketPair pair = await SocketPair.ConnectAsync();

        // A socket without the upper layer protocol refuses the option.
        SocketOptions.ApplyToKernel(pair.Client, isServer: true, new KtlsOptions { ZeroCopySendFile = true }, new ConnectionInfo { KtlsSend = 1 });

        EventWrittenEventArgs written = Assert.Single(listener.Events, e => e.EventName == "SocketOptionRefused");
        Assert.Equal([true, "TLS_TX_ZEROCOPY_RO"], written.Payload!.Take(2));
        Assert.NotEmpty((string)written.Payload![2]!);
        Assert.Equal(EventLevel.Warning, written.Level);
    }

    /// <summary>
    /// The option is not used on a kernel that lacks it or corrupts padded records with it. Any other kernel refuses it
    /// on a plain socket.
    /// </summary>
    [Fact]
    public async Task Padding_that_the_kernel_cannot_be_told_of_is_an_event()
    {
        using Listener listener = new(EventLevel.Warning);
        using SocketPair pair = await SocketPair.ConnectAsync();

        SocketOptions.ApplyToKernel(
            pair.Client,
            isServer: false,
            new KtlsOptions { ExpectNoPadding = KtlsExpectNoPadding.Always },
            new ConnectionInfo { KtlsReceive = 1, ProtocolVersion = 0x0304 });

        EventWrittenEventArgs written = Assert.Single(listener.Events, e => e.EventName == "SocketOptionRefused");
        Assert.Equal([false, "TLS_RX_EXPECT_NO_PAD"], written.Payload!.Take(2));
        Assert.Equal(!KtlsPlatform.Probe().CanExpectNoPadding, (string)written.Payload![2]! == nameof(SocketError.OperationNotSupported));
    }

    [Fact]
    public async Task Counters_count_what_happens()
    {
        using Listener listener = new(EventLevel.Informational, counterInterval: 1);
        await using TlsPair pair = await TlsPair.ConnectAsync(
            TlsMode.DirectOpenSsl, System.Security.Authentication.SslProtocols.Tls13);
        await ((KtlsStream)pair.Client).UpdateSendKeyAsync(false).InTime("a KeyUpdate");

        IReadOnlyDictionary<string, double> counters = await listener.CountersAsync().InTime("a report of the counters");

        Assert.Equal(
            ["current-connections", "failed-connections", "failed-handshakes", "fallbacks", "handshakes", "key-updates"],
            counters.Keys.Order(StringComparer.Ordinal));
        Assert.Equal(TelemetryDocumentTests.Counters.Order(StringComparer.Ordinal), counters.Keys.Order(StringComparer.Ordinal));
        Assert.InRange(counters["handshakes"], 2, double.MaxValue);
        Assert.InRange(counters["current-connections"], 2, double.MaxValue);
        Assert.InRange(counters["key-updates"], 1, double.MaxValue);
    }

    [Fact]
    public async Task A_key_that_changes_and_a_connection_that_fails_are_events()
    {
        using Listener listener = new(EventLevel.Informational);
        await using TlsPair pair = await TlsPair.ConnectAsync(
            TlsMode.DirectOpenSsl, System.Security.Authentication.SslProtocols.Tls13);

        await ((KtlsStream)pair.Client).UpdateSendKeyAsync(false).InTime("a KeyUpdate");
        pair.ServerSocket.Dispose();
        await Assert.ThrowsAnyAsync<IOException>(() => pair.Client.ReadAsync(new byte[1]).AsTask().InTime("the truncation"));

        Assert.Equal(["Application"], Assert.Single(listener.Events, e => e.EventName == "KeyUpdated").Payload!);
        Assert.Equal(typeof(IOException).FullName, Assert.Single(listener.Events, e => e.EventName == "ConnectionFailed").Payload![0]);
    }

    /// <summary>A session that begins late receives what has happened before it.</summary>
    [Fact]
    public async Task A_session_that_asks_receives_the_status_of_the_process()
    {
        await using TlsPair pair = await TlsPair.ConnectAsync(TlsMode.DirectOpenSsl, System.Security.Authentication.SslProtocols.Tls13);
        await using KtlsStream stream = new(new NoSocket(), false, new KtlsOptions { Mode = KtlsMode.Disabled, Fallback = KtlsFallback.OpenSsl });
        await Assert.ThrowsAnyAsync<IOException>(() => stream.AuthenticateAsClientAsync("localhost"));

        using Listener quiet = new(EventLevel.Informational);
        Assert.DoesNotContain(quiet.Events, e => e.EventName == "Status");
        using Listener listener = new(EventLevel.Informational, asks: true);

        object?[][] lines = [.. listener.Events.Where(e => e.EventName == "Status").Select(e => e.Payload!.ToArray())];
        Assert.Equal("end", lines[^1][0]);
        Assert.Equal(
            ["DOTNET_SYSTEM_NET_SECURITY_KTLS", "DOTNET_SYSTEM_NET_SECURITY_DIRECT_OPENSSL"],
            lines.Where(l => l[0] is "switch").Select(l => $"{l[1]}"));
        Assert.Contains(
            lines,
            l => l is ["connections", "", "send=openssl (DisabledByMode) receive=openssl (DisabledByMode)", "client, Tls13", >= 1L]);
        object?[] fallback = Assert.Single(lines, l => l is ["fallback", "", "NotSocketStream", ..] && $"{l[3]}".Contains("+NoSocket", StringComparison.Ordinal));
        Assert.StartsWith($"client. {Advice.On(KtlsFallbackReason.NotSocketStream)}", $"{fallback[3]}", StringComparison.Ordinal);
    }

    [Fact]
    public void The_manifest_can_be_made() =>
        Assert.NotNull(EventSource.GenerateManifest(typeof(KtlsEventSource.KernelTls), null, EventManifestOptions.Strict));

    [Fact]
    public void Its_type_has_its_name()
    {
        Assert.Equal("KernelTls", KtlsEventSource.Log.Name);
        Assert.Equal("KernelTls", EventSource.GetName(typeof(KtlsEventSource.KernelTls)));
        Assert.Equal(KtlsEventSource.Log.Guid, EventSource.GetGuid(typeof(KtlsEventSource.KernelTls)));
    }

    private sealed class Listener : EventListener
    {
        private readonly TaskCompletionSource _reported = new(TaskCreationOptions.RunContinuationsAsynchronously);
        private readonly ConcurrentDictionary<string, double> _counters = new();
        private int _again;

        /// <summary>Begins to listen.</summary>
        /// <param name="level">The lowest level of events.</param>
        /// <param name="counterInterval">The seconds between two reports of the counters, or 0 for none.</param>
        /// <param name="asks">Whether to ask for the status of the process.</param>
        public Listener(EventLevel level, int counterInterval = 0, bool asks = false) => EnableEvents(
            KtlsEventSource.Log,
            level,
            EventKeywords.None,
            counterInterval > 0 ? new Dictionary<string, string?> { ["EventCounterIntervalSec"] = $"{counterInterval}" }
            : asks ? new Dictionary<string, string?> { [KtlsEventSource.StatusArgument] = "1" }
            : null);

        public ConcurrentQueue<EventWrittenEventArgs> Events { get; } = new();

        /// <summary>
        /// Returns the counters once the second report after this call has begun. The first one may be from before.
        /// </summary>
        public async Task<IReadOnlyDictionary<string, double>> CountersAsync()
        {
            _counters.Clear();
            await _reported.Task;
            return _counters;
        }

        protected override void OnEventWritten(EventWrittenEventArgs eventData)
        {
            if (eventData.EventName != "EventCounters")
            {
                Events.Enqueue(eventData);
                return;
            }

            IDictionary<string, object> counter = (IDictionary<string, object>)eventData.Payload![0]!;
            if (!_counters.TryAdd((string)counter["Name"], (double)counter["Mean"]) && ++_again > 1)
            {
                _reported.TrySetResult();
            }

            _counters[(string)counter["Name"]] = (double)counter["Mean"];
        }
    }

    /// <summary>A stream that accepts all writes and ends at once.</summary>
    private class NoSocket : Stream
    {
        public override bool CanRead => true;

        public override bool CanSeek => false;

        public override bool CanWrite => true;

        public override long Length => throw new NotSupportedException();

        public override long Position { get => throw new NotSupportedException(); set => throw new NotSupportedException(); }

        public override void Flush()
        {
        }

        public override int Read(byte[] buffer, int offset, int count) => 0;

        public override long Seek(long offset, SeekOrigin origin) => throw new NotSupportedException();

        public override void SetLength(long value) => throw new NotSupportedException();

        public override void Write(byte[] buffer, int offset, int count)
        {
        }
    }

    private sealed class Generic<T> : NoSocket;
}

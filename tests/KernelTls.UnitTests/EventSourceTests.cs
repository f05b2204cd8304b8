using System.Diagnostics.Tracing;
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
        await using KtlsStream stream = new(new NoSocket(), false, new KtlsOptions { DirectOpenSsl = true });

        await Assert.ThrowsAnyAsync<IOException>(() => stream.AuthenticateAsClientAsync("localhost"));

        EventWrittenEventArgs written = Assert.Single(listener.Events, e => e.EventName == "Fallback");
        Assert.Equal([false, "NotASocket", KtlsPlatform.NotSupportedDetail], written.Payload!);
        Assert.Equal(EventLevel.Warning, written.Level);
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
            ["OpenSsl", "DirectOpenSsl", "OpenSsl", "DirectOpenSsl"], client.Payload.Skip(3).Cast<string>());
    }

    [Fact]
    public async Task A_failed_handshake_is_an_event_with_its_exception()
    {
        using Listener listener = new(EventLevel.Warning);
        await using TlsPair pair = await TlsPair.CreateAsync(TlsMode.DirectOpenSsl, TlsMode.Stock);
        pair.ServerSocket.Dispose();

        await Assert.ThrowsAnyAsync<IOException>(() => pair.Client.ShakeClientAsync(Handshakes.ClientOptions(default)));

        EventWrittenEventArgs written = Assert.Single(listener.Events, e => e.EventName == "HandshakeFailed");
        Assert.Equal(typeof(IOException).FullName, written.Payload![1]);
    }

    [Fact]
    public async Task An_option_that_the_kernel_refuses_is_an_event()
    {
        using Listener listener = new(EventLevel.Warning);
        using SocketPair pair = await SocketPair.ConnectAsync();

        // Without the upper layer there is nobody to take it.
        new TransportOptions(IsServer: true, ZeroCopySendFile: true).ApplyToKernel(pair.Client, new ConnectionInfo { KtlsSend = 1 });

        EventWrittenEventArgs written = Assert.Single(listener.Events, e => e.EventName == "SocketOptionRefused");
        Assert.Equal([true, "TLS_TX_ZEROCOPY_RO"], written.Payload!.Take(2));
        Assert.NotEmpty((string)written.Payload![2]!);
        Assert.Equal(EventLevel.Warning, written.Level);
    }

    [Fact]
    public void The_manifest_can_be_made() =>
        Assert.NotNull(EventSource.GenerateManifest(typeof(KtlsEventSource), null, EventManifestOptions.Strict));

    private sealed class Listener : EventListener
    {
        private readonly EventLevel _level;

        public Listener(EventLevel level)
        {
            _level = level;
            EnableEvents(KtlsEventSource.Log, _level);
        }

        public System.Collections.Concurrent.ConcurrentQueue<EventWrittenEventArgs> Events { get; } = new();

        protected override void OnEventWritten(EventWrittenEventArgs eventData) => Events.Enqueue(eventData);
    }

    /// <summary>Takes what is written and ends at once.</summary>
    private sealed class NoSocket : Stream
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
}

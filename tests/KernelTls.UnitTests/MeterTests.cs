using System.Collections.Concurrent;
using System.Diagnostics.Metrics;
using System.Security.Authentication;
using KernelTls.Diagnostics;
using KernelTls.Tests;

namespace KernelTls.UnitTests;

/// <summary>
/// Tests the meter. Instruments apply to the process, so these tests run alone, together with the other ones that
/// listen.
/// </summary>
[Collection(nameof(EventSourceTests))]
public sealed class MeterTests : IDisposable
{
    private readonly ConcurrentQueue<string> _measured = new();
    private readonly MeterListener _listener = new();

    public MeterTests()
    {
        _listener.InstrumentPublished = (instrument, listener) =>
        {
            if (instrument.Meter.Name == KtlsMeter.Name)
            {
                listener.EnableMeasurementEvents(instrument);
            }
        };
        _listener.SetMeasurementEventCallback<long>((instrument, value, tags, _) => Note(instrument, $"{value}", tags));
        _listener.SetMeasurementEventCallback<double>(
            (instrument, value, tags, _) => Note(instrument, value is > 0 and < 60 ? "seconds" : $"{value}", tags));
        _listener.Start();
    }

    public void Dispose() => _listener.Dispose();

    [Theory]
    [InlineData(SslProtocols.Tls12, "1.2")]
    [InlineData(SslProtocols.Tls13, "1.3")]
    public async Task A_connection_is_measured_from_its_handshake_to_its_end(SslProtocols protocol, string version)
    {
        await using (await TlsPair.ConnectAsync(TlsMode.DirectOpenSsl, protocol))
        {
            foreach (string role in new[] { "client", "server" })
            {
                string tags = $"kernel_tls.receive=openssl kernel_tls.role={role} kernel_tls.send=openssl tls.protocol.version={version}";
                Assert.Contains($"kernel_tls.handshake.duration seconds {tags} tls.resumed=False", _measured);
                Assert.Contains($"kernel_tls.connections 1 {tags}", _measured);
                Assert.DoesNotContain($"kernel_tls.connections -1 {tags}", _measured);
            }
        }

        Assert.Equal(2, _measured.Count(m => m.StartsWith("kernel_tls.connections 1 ", StringComparison.Ordinal)));
        Assert.Equal(2, _measured.Count(m => m.StartsWith("kernel_tls.connections -1 ", StringComparison.Ordinal)));
        Assert.DoesNotContain(_measured, m => m.StartsWith("kernel_tls.fallbacks", StringComparison.Ordinal));
    }

    /// <summary>OpenSSL's configuration may allow versions whose names are obsolete in .NET.</summary>
    [Theory]
    [InlineData(0x00C0, "1.0")]
    [InlineData(0x0300, "1.1")]
    [InlineData(0x0C00, "1.2")]
    [InlineData(0x3000, "1.3")]
    public void A_version_is_what_it_is(int protocol, string version) => Assert.Equal(version, KtlsMeter.VersionOf((SslProtocols)protocol));

    [Fact]
    public async Task A_connection_that_was_not_counted_is_not_taken_back()
    {
        _listener.Dispose();
        TlsPair pair = await TlsPair.ConnectAsync(TlsMode.DirectOpenSsl, SslProtocols.Tls13);
        using MeterTests late = new();

        await pair.DisposeAsync();

        Assert.DoesNotContain(late._measured, m => m.StartsWith("kernel_tls.connections", StringComparison.Ordinal));
    }

    [Fact]
    public async Task A_failed_handshake_is_measured_with_its_exception()
    {
        await using TlsPair pair = await TlsPair.CreateAsync(TlsMode.DirectOpenSsl, TlsMode.Stock);
        pair.ServerSocket.Dispose();

        await Assert.ThrowsAnyAsync<IOException>(() => pair.Client.HandshakeAsClientAsync(Handshakes.ClientOptions(default)));

        Assert.Equal(["kernel_tls.handshake.duration seconds error.type=System.IO.IOException kernel_tls.role=client"], _measured);
    }

    [Fact]
    public async Task Each_direction_that_falls_back_is_counted_with_its_reason()
    {
        await using KtlsStream stream = new(new MemoryStream(), false, new KtlsOptions { Mode = KtlsMode.Disabled, Fallback = KtlsFallback.OpenSsl });

        await Assert.ThrowsAnyAsync<Exception>(() => stream.AuthenticateAsClientAsync("localhost"));

        Assert.Equal(
            [
                "kernel_tls.fallbacks 1 kernel_tls.direction=send kernel_tls.reason=NotSocketStream kernel_tls.role=client",
                "kernel_tls.fallbacks 1 kernel_tls.direction=receive kernel_tls.reason=NotSocketStream kernel_tls.role=client",
            ],
            _measured);
    }

    [Fact]
    public async Task Changes_of_keys_are_counted_with_their_cause_and_the_peers_messages_as_well()
    {
        await using TlsPair pair = await TlsPair.ConnectAsync(TlsMode.DirectOpenSsl, SslProtocols.Tls13);
        byte[] buffer = new byte[1];

        await ((KtlsStream)pair.Client).UpdateSendKeyAsync(true).InTime("the client's KeyUpdate");
        await pair.Client.WriteAsync(buffer).InTime("the client's data");
        await pair.Server.ReadExactlyAsync(buffer).InTime("the client's data, and its KeyUpdate before");
        await pair.Server.WriteAsync(buffer).InTime("the server's data");
        await pair.Client.ReadExactlyAsync(buffer).InTime("the server's data, and its KeyUpdate before");

        Assert.Single(_measured, "kernel_tls.key_updates 1 kernel_tls.cause=application");
        Assert.Single(_measured, "kernel_tls.key_updates 1 kernel_tls.cause=peer");
        Assert.Contains(_measured, m => m.StartsWith("kernel_tls.post_handshake_messages ", StringComparison.Ordinal));
    }

    [Fact]
    public async Task A_connection_that_fails_later_is_counted_once()
    {
        await using TlsPair pair = await TlsPair.ConnectAsync(
            TlsMode.DirectOpenSsl, SslProtocols.Tls13, tune: o => o.RequireCloseNotify = true);
        pair.ServerSocket.Dispose();

        await Assert.ThrowsAnyAsync<IOException>(() => pair.Client.ReadAsync(new byte[1]).AsTask().InTime("the truncation"));
        await Assert.ThrowsAnyAsync<IOException>(() => pair.Client.ReadAsync(new byte[1]).AsTask().InTime("the truncation again"));

        Assert.Single(_measured, "kernel_tls.connection.failures 1 error.type=System.IO.IOException");
    }

    [Fact]
    public async Task An_end_without_close_notify_is_counted_once_and_is_no_failure()
    {
        await using TlsPair pair = await TlsPair.ConnectAsync(TlsMode.DirectOpenSsl, SslProtocols.Tls13);
        pair.ServerSocket.Dispose();

        Assert.Equal(0, await pair.Client.ReadAsync(new byte[1]).AsTask().InTime("the end"));
        Assert.Equal(0, await pair.Client.ReadAsync(new byte[1]).AsTask().InTime("the end again"));

        Assert.Single(_measured, "kernel_tls.connection.ends_without_close_notify 1");
        Assert.DoesNotContain(_measured, m => m.StartsWith("kernel_tls.connection.failures", StringComparison.Ordinal));
    }

    private void Note(Instrument instrument, string value, ReadOnlySpan<KeyValuePair<string, object?>> tags)
    {
        IEnumerable<string> sorted = tags.ToArray().Select(t => $"{t.Key}={t.Value}").Order(StringComparer.Ordinal);
        _measured.Enqueue(string.Join(' ', [instrument.Name, value, .. sorted]));
    }
}

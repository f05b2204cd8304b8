using System.Collections.Concurrent;
using System.Net.Security;
using System.Net.Sockets;
using System.Security.Authentication;
using KernelTls.Diagnostics;
using KernelTls.Tests;

namespace KernelTls.UnitTests;

/// <summary>
/// Tests which handshakes the monitor regards as those of a stock SslStream. It listens to the whole process, so no
/// other test runs at the same time.
/// </summary>
[Collection(nameof(StockHandshakeMonitorTests))]
[CollectionDefinition(nameof(StockHandshakeMonitorTests), DisableParallelization = true)]
public class StockHandshakeMonitorTests
{
    private readonly ConcurrentQueue<StockHandshake> _found = new();

    [Fact]
    public async Task The_first_stock_handshake_is_found_with_the_assembly_that_started_it()
    {
        using StockHandshakeMonitor monitor = new(_found.Enqueue);

        await ShakeHandsAsync(TlsMode.Stock);
        await ShakeHandsAsync(TlsMode.Stock);

        StockHandshake first = Assert.Single(_found);
        Assert.Equal("KernelTls.UnitTests", first.Assembly);
        Assert.Equal(first.IsServer ? "" : "localhost", first.TargetHost);
    }

    [Fact]
    public async Task A_handshake_of_the_library_is_none()
    {
        using StockHandshakeMonitor monitor = new(_found.Enqueue);

        await ShakeHandsAsync(TlsMode.DirectOpenSsl);
        Assert.Empty(_found);

        await ShakeHandsAsync(TlsMode.Stock);
        Assert.Single(_found);
    }

    [Fact]
    public async Task A_handshake_that_falls_back_is_none()
    {
        using StockHandshakeMonitor monitor = new(_found.Enqueue);

        KtlsOptions disabled = new() { Mode = KtlsMode.Disabled };
        using SocketPair sockets = await SocketPair.ConnectAsync();
        await using KtlsStream client = new(new NetworkStream(sockets.Client), false, disabled);
        await using KtlsStream server = new(new NetworkStream(sockets.Server), false, disabled);
        await Task.WhenAll(
            client.AuthenticateAsClientAsync(Handshakes.ClientOptions(SslProtocols.Tls13)),
            server.AuthenticateAsServerAsync(Handshakes.ServerOptions(SslProtocols.Tls13))).InTime();
        Assert.Empty(_found);

        await ShakeHandsAsync(TlsMode.Stock);
        Assert.Single(_found);
    }

    [Fact]
    public async Task The_handshake_of_an_HttpClient_names_its_assembly_and_what_would_change_it()
    {
        using StockHandshakeMonitor monitor = new(_found.Enqueue);
        using HttpClient client = new(new SocketsHttpHandler
        {
            ConnectCallback = (_, _) => ValueTask.FromResult<Stream>(new MemoryStream()),
        });

        await Assert.ThrowsAsync<HttpRequestException>(() => client.GetAsync(new Uri("https://localhost/")));

        StockHandshake first = Assert.Single(_found);
        Assert.Equal(new StockHandshake(false, "localhost", "System.Net.Http"), first);
        Assert.Contains("UseKernelTls", StockHandshakeMonitor.Advice(first), StringComparison.Ordinal);
    }

    /// <summary>
    /// Handshakes of the library before the monitor leave no mark on the thread, which starts a stock handshake later.
    /// </summary>
    [Fact]
    public async Task A_fallback_before_the_monitor_hides_no_handshake_behind_it()
    {
        KtlsOptions disabled = new() { Mode = KtlsMode.Disabled };
        await Task.Run(() =>
        {
            using KtlsStream fallback = new(new MemoryStream(), false, disabled);
            Assert.ThrowsAny<IOException>(() => fallback.AuthenticateAsClient("localhost"));
            using StockHandshakeMonitor monitor = new(_found.Enqueue);
            using SslStream stock = new(new MemoryStream());
            Assert.ThrowsAny<IOException>(() => stock.AuthenticateAsClient("localhost"));
        });

        Assert.Single(_found);
    }

    private static async Task ShakeHandsAsync(TlsMode mode)
    {
        await using TlsPair pair = await TlsPair.ConnectAsync(mode, SslProtocols.Tls13);
    }
}

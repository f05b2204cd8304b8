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
    public async Task Each_kind_of_stock_handshake_is_found_once_with_the_code_that_started_it()
    {
        ManualTime time = new();
        using StockHandshakeMonitor monitor = new(_found.Enqueue, time);

        await ShakeHandsAsync(TlsMode.Stock);
        time.Advance(TimeSpan.FromHours(1));
        await ShakeHandsAsync(TlsMode.Stock);

        Assert.Equal([false, true], _found.Select(f => f.IsServer).Order());
        Assert.All(_found, f => Assert.Equal("KernelTls.UnitTests", f.Assembly));
        Assert.All(_found, f => Assert.Equal(f.IsServer ? "" : "localhost", f.TargetHost));
        Assert.All(_found, f => Assert.StartsWith("KernelTls.", f.Caller, StringComparison.Ordinal));
        Assert.All(_found, f => Assert.Contains("<KernelTlsWeave Include=\"KernelTls.UnitTests\" />", f.Remedy, StringComparison.Ordinal));
    }

    /// <summary>The first handshake of a process is of one kind, and that of a library that it uses later of another one.</summary>
    [Fact]
    public async Task A_kind_that_comes_later_is_found_beside_one_that_never_stops()
    {
        ManualTime time = new();
        using StockHandshakeMonitor monitor = new(_found.Enqueue, time);
        for (int i = 0; i < 3 * StackBudget.Savings; i++)
        {
            StartStock("busy");
        }

        using HttpClient client = new(new SocketsHttpHandler
        {
            ConnectCallback = (_, _) => ValueTask.FromResult<Stream>(new MemoryStream()),
        });
        await Assert.ThrowsAsync<HttpRequestException>(() => client.GetAsync(new Uri("https://rare/")));

        Assert.Equal(["KernelTls.UnitTests", "System.Net.Http"], _found.Select(f => f.Assembly));
    }

    /// <summary>SmtpClient is code of the framework, on a stack that shows who called it.</summary>
    [Fact]
    public async Task A_connection_of_the_framework_names_the_assembly_that_called_it()
    {
        using StockHandshakeMonitor monitor = new(_found.Enqueue);
        using TcpListener server = new(System.Net.IPAddress.Loopback, 0);
        server.Start();
        Task serving = Task.Run(async () =>
        {
            using TcpClient accepted = await server.AcceptTcpClientAsync();
            await using NetworkStream stream = accepted.GetStream();
            using StreamReader reader = new(stream, leaveOpen: true);
            foreach (string answer in (string[])["220 hello", "250-hello\r\n250 STARTTLS", "220 go"])
            {
                await stream.WriteAsync(System.Text.Encoding.ASCII.GetBytes(answer + "\r\n"));
                if (!answer.StartsWith("220 go", StringComparison.Ordinal))
                {
                    await reader.ReadLineAsync();
                }
            }
        });

        await Task.Run(() =>
        {
            using System.Net.Mail.SmtpClient client = new("127.0.0.1", ((System.Net.IPEndPoint)server.LocalEndpoint).Port) { EnableSsl = true };
            Assert.ThrowsAny<Exception>(() => client.Send("a@example.com", "b@example.com", "", ""));
        }).InTime("the mail's failure");
        await serving.InTime("the server's end");

        StockHandshake found = Assert.Single(_found);
        Assert.Equal(("System.Net.Mail", "KernelTls.UnitTests"), (found.Assembly, found.Origin));
        Assert.Contains("MailKit", found.Remedy, StringComparison.Ordinal);
    }

    /// <summary>FtpWebRequest is another.</summary>
    [Fact]
    public async Task A_transfer_of_the_framework_is_one_too()
    {
        using StockHandshakeMonitor monitor = new(_found.Enqueue);
        using TcpListener server = new(System.Net.IPAddress.Loopback, 0);
        server.Start();
        Task serving = Task.Run(async () =>
        {
            using TcpClient accepted = await server.AcceptTcpClientAsync();
            await using NetworkStream stream = accepted.GetStream();
            using StreamReader reader = new(stream, leaveOpen: true);
            await stream.WriteAsync("220 hello\r\n"u8.ToArray());
            await reader.ReadLineAsync();
            await stream.WriteAsync("234 go\r\n"u8.ToArray());
        });

        await Task.Run(() =>
        {
#pragma warning disable SYSLIB0014 // It is obsolete.
            System.Net.FtpWebRequest request = (System.Net.FtpWebRequest)System.Net.WebRequest.Create(new Uri($"ftp://{server.LocalEndpoint}/file"));
#pragma warning restore SYSLIB0014
            request.EnableSsl = true;
            Assert.ThrowsAny<Exception>(request.GetResponse);
        }).InTime("the transfer's failure");
        await serving.InTime("the server's end");

        StockHandshake found = Assert.Single(_found);
        Assert.Equal("System.Net.Requests", found.Assembly);
        Assert.Contains("FluentFTP", found.Remedy, StringComparison.Ordinal);
    }

    [Fact]
    public void A_second_has_one_look_at_the_stack_and_ten_can_be_saved_up()
    {
        ManualTime time = new();
        StackBudget budget = new(time);
        int host = 0;

        Assert.Equal(StackBudget.Savings, Enumerable.Range(0, 1000).Count(_ => budget.TryTake(false, $"{host++}")));
        time.Advance(TimeSpan.FromSeconds(1));
        Assert.Equal(1, Enumerable.Range(0, 1000).Count(_ => budget.TryTake(false, $"{host++}")));
        time.Advance(TimeSpan.FromHours(1));
        Assert.Equal(StackBudget.Savings, Enumerable.Range(0, 1000).Count(_ => budget.TryTake(false, $"{host++}")));

        time.Advance(TimeSpan.FromHours(1));
        Assert.Equal(1, Enumerable.Range(0, 1000).Count(_ => budget.TryTake(true, "")));
    }

    [Fact]
    public async Task A_handshake_of_the_library_is_none()
    {
        using StockHandshakeMonitor monitor = new(_found.Enqueue);

        await ShakeHandsAsync(TlsMode.DirectOpenSsl);
        Assert.Empty(_found);

        await ShakeHandsAsync(TlsMode.Stock);
        Assert.Equal(2, _found.Count);
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
        Assert.Equal(2, _found.Count);
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
        Assert.Equal((false, "localhost", "System.Net.Http"), (first.IsServer, first.TargetHost, first.Assembly));
        Assert.Contains("UseKernelTls", first.Remedy, StringComparison.Ordinal);
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

    private static void StartStock(string host)
    {
        using SslStream stock = new(new MemoryStream());
        Assert.ThrowsAny<IOException>(() => stock.AuthenticateAsClient(host));
    }

    private static async Task ShakeHandsAsync(TlsMode mode)
    {
        await using TlsPair pair = await TlsPair.ConnectAsync(mode, SslProtocols.Tls13);
    }
}

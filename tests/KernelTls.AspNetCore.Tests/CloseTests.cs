using System.Net;
using System.Net.Security;
using System.Net.Sockets;
using System.Security.Authentication;
using System.Text;
using KernelTls.AspNetCore.Tls;
using KernelTls.Tests;
using Microsoft.AspNetCore.Builder;
using Microsoft.AspNetCore.Connections;
using Microsoft.AspNetCore.Connections.Features;
using Microsoft.AspNetCore.Http;
using Microsoft.AspNetCore.Server.Kestrel.Core;
using Microsoft.AspNetCore.Server.Kestrel.Transport.Sockets;
using Microsoft.Extensions.DependencyInjection;
using Microsoft.Extensions.Logging;

namespace KernelTls.AspNetCore.Tests;

/// <summary>Tests how connections end, including those of misbehaving clients.</summary>
[Trait("loop", "outer-kernel")]
public class CloseTests
{
    // The server needs these to detect that no read is pending.
    private const int Heartbeats = 3;

    public static TheoryData<TlsMode> All => [.. Modes.Every];

    public static TheoryData<TlsMode> OnOpenSsl => [.. Modes.OnOpenSsl];

    public static TheoryData<TlsMode, SslProtocols> AllOnOpenSsl => Modes.AllOnOpenSsl;

    /// <summary>Gets one mode only, because the test takes long.</summary>
    public static TheoryData<TlsMode, SslProtocols> LastOnOpenSsl
    {
        get
        {
            TlsMode mode = Modes.OnOpenSsl.DefaultIfEmpty(TlsMode.DirectOpenSsl).Last();
            return new() { { mode, SslProtocols.Tls12 }, { mode, SslProtocols.Tls13 } };
        }
    }

    /// <summary>
    /// The stock server sends no close_notify. On OpenSSL it informs the client that no data is missing.
    /// </summary>
    [Theory]
    [MemberData(nameof(AllOnOpenSsl))]
    public async Task The_client_gets_close_notify(TlsMode mode, SslProtocols version)
    {
        await using Server server = await Server.StartAsync(mode, https => https.SslProtocols = version);
        using Socket socket = await server.ConnectSocketAsync();

        // The client is this library's own stream, because the stock one treats a truncation as an end.
        KtlsOptions options = Modes.OptionsOf(TlsMode.DirectOpenSsl);
        options.RequireCloseNotify = true;
        await using KtlsStream client = new(new NetworkStream(socket), false, options);
        await client.AuthenticateAsClientAsync(Handshakes.ClientOptions(version)).InTime();
        await Raw.SendRequestAsync(client, "/bytes/100000", close: true);

        using MemoryStream answer = new();
        await client.CopyToAsync(answer).InTime("the end of the stream");

        Assert.InRange(answer.Length, 100_000, 101_000);
    }

    /// <summary>
    /// The peer's end is watched while the connection is being closed: the watch must not use what the close disposes.
    /// </summary>
    [Theory]
    [MemberData(nameof(OnOpenSsl))]
    public async Task Where_both_ends_close_at_once_nothing_is_thrown(TlsMode mode)
    {
        const int Connections = 100;
        using ThrownExceptions thrown = ThrownByInput();
        await using (Server server = await Server.StartAsync(mode))
        {
            for (int i = 0; i < Connections; i++)
            {
                using Socket socket = await server.ConnectSocketAsync();
                await using KtlsStream client = new(new NetworkStream(socket), false, Modes.OptionsOf(TlsMode.DirectOpenSsl));
                await client.AuthenticateAsClientAsync(Handshakes.ClientOptions(SslProtocols.Tls13)).InTime();
                await Raw.SendRequestAsync(client, "/bytes/10", close: true);
                Assert.NotEqual(0, await client.ReadAsync(new byte[1000]).InTime("the response"));
            }

            // Disposing the server aborts connections that have not ended, and an abort closes the socket under the watch.
            await server.StopAsync().InTime("the connections to end");
        }

        thrown.AssertNone();
    }

    /// <summary>
    /// The watch does not wait for a client that is still connected: closing would have to cancel the wait.
    /// </summary>
    [Theory]
    [MemberData(nameof(OnOpenSsl))]
    public async Task Where_the_server_closes_after_a_long_request_nothing_is_thrown(TlsMode mode)
    {
        using ThrownExceptions thrown = ThrownByInput();
        TaskCompletionSource goOn = new(TaskCreationOptions.RunContinuationsAsynchronously);
        Endpoints.Waiting waiting = new() { GoOn = goOn.Task };
        await using (Server server = await StartWaitingAsync(mode, waiting))
        {
            await using SslStream client = await server.ConnectAsync();
            await Raw.SendRequestAsync(client, "/finish", close: true);
            await waiting.Begun.Task.InTime("the request to begin");
            await waiting.HeartbeatsAsync(Heartbeats);
            goOn.SetResult();
            using StreamReader reader = new(client, Encoding.Latin1);
            Assert.Contains("\r\nfinished", await reader.ReadToEndAsync().InTime("the answer"), StringComparison.Ordinal);
        }

        thrown.AssertNone();
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task The_stock_client_reads_the_end(TlsMode mode)
    {
        await using Server server = await Server.StartAsync(mode);
        await using SslStream client = await server.ConnectAsync();
        await Raw.SendRequestAsync(client, "/bytes/3000000", close: true);

        using MemoryStream answer = new();
        await client.CopyToAsync(answer).InTime();

        Pattern.AssertAt(0, answer.ToArray().AsSpan(^3_000_000));
        Assert.Equal(0, await client.ReadAsync(new byte[1]).InTime());
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task An_idle_connection_that_the_client_ends_goes_quietly(TlsMode mode)
    {
        await using Server server = await Server.StartAsync(mode);
        foreach (bool notify in new[] { true, false })
        {
            SslStream client = await server.ConnectAsync();
            await Raw.SendRequestAsync(client, "/bytes/10");
            await Raw.ReadHeadAsync(client);
            if (notify)
            {
                await client.ShutdownAsync().InTime();
            }

            await client.DisposeAsync();
        }

        await server.Events.WaitForAsync(e => e.Id.Name == "ConnectionStop", "the connection to stop");
        Assert.DoesNotContain(server.Events.Entries, e => e.Level > LogLevel.Information);
    }

    [Theory]
    [MemberData(nameof(All))]
    [Trait("waits", "mostly")]
    public async Task A_client_that_ends_its_sending_half_alone_still_gets_its_answer(TlsMode mode)
    {
        TaskCompletionSource goOn = new(TaskCreationOptions.RunContinuationsAsynchronously);
        Endpoints.Waiting waiting = new() { GoOn = goOn.Task };
        await using Server server = await StartWaitingAsync(mode, waiting);
        await using SslStream client = await server.ConnectAsync();
        await Raw.SendRequestAsync(client, "/finish");
        await waiting.Begun.Task.InTime("the request to begin");
        await client.ShutdownAsync().InTime();

        await waiting.HeartbeatsAsync(Heartbeats);
        goOn.SetResult();
        using StreamReader reader = new(client, Encoding.Latin1);

        Assert.Contains("\r\nfinished\r\n", await reader.ReadToEndAsync().InTime(), StringComparison.Ordinal);
    }

    [Theory]
    [MemberData(nameof(All))]
    [Trait("waits", "mostly")]
    public async Task What_a_client_sends_ahead_is_not_lost_while_a_request_is_at_work(TlsMode mode)
    {
        Endpoints.Waiting waiting = new();
        await using Server server = await StartWaitingAsync(mode, waiting);
        await using SslStream client = await server.ConnectAsync();
        string body = new('x', 10_000);
        await client.WriteAsync(Encoding.ASCII.GetBytes(
            $"POST /slow HTTP/1.1\r\nHost: localhost\r\nContent-Length: {body.Length}\r\n\r\n")).InTime();
        await waiting.Begun.Task.InTime("the request to begin");
        foreach (string part in new[] { body[..1], body[1..2], body[2..] })
        {
            await waiting.HeartbeatsAsync(Heartbeats);
            await client.WriteAsync(Encoding.ASCII.GetBytes(part)).InTime();
        }

        await client.WriteAsync("GET /bytes/7 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"u8.ToArray()).InTime();
        using StreamReader reader = new(client, Encoding.Latin1);
        string answers = await reader.ReadToEndAsync().InTime();

        Assert.Contains($"\r\n{body.Length} x", answers, StringComparison.Ordinal);
        Assert.Contains("Content-Length: 7\r\n", answers, StringComparison.Ordinal);
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task A_slow_reader_holds_the_server_back(TlsMode mode)
    {
        const int Size = 200_000_000;
        await using Server server = await Server.StartAsync(mode);
        await using SslStream client = await server.ConnectAsync();
        long before = GC.GetTotalMemory(forceFullCollection: true);
        await Raw.SendRequestAsync(client, $"/bytes/{Size}");
        await Raw.ReadHeadAsync(client);

        // The server must have stopped: unread data is in the sockets' buffers, and a little in its own.
        await Task.Delay(Limits.Absence);
        Assert.InRange(GC.GetTotalMemory(forceFullCollection: false) - before, long.MinValue, 30_000_000);
        Assert.DoesNotContain(server.Events.Entries, e => e.Id.Name == "ConnectionStop" || e.Message.StartsWith("Request finished", StringComparison.Ordinal));

        await Pattern.ReceiveAsync(client, 5_000_000).InTime();
    }

    /// <summary>
    /// As on the stock server, data flushed before the close is sent for as long as the client takes to read it.
    /// </summary>
    [Theory]
    [MemberData(nameof(LastOnOpenSsl))]
    [Trait("waits", "mostly")]
    public async Task A_closing_connection_has_patience_with_its_reader(TlsMode mode, SslProtocols version)
    {
        const int Size = 600_000;
        await using Server server = await Server.StartAsync(
            mode,
            https =>
            {
                https.SslProtocols = version;
                https.OnAuthenticate = static (connection, _) =>
                    connection.Features.Get<IConnectionSocketFeature>()!.Socket.SendBufferSize = 32 * 1024;
            },
            builder: builder => builder.Services.Configure<SocketTransportOptions>(o => o.MaxWriteBufferSize = 2 * Size));
        using Socket socket = new(SocketType.Stream, ProtocolType.Tcp) { NoDelay = true, ReceiveBufferSize = 32 * 1024 };
        await socket.ConnectAsync(IPAddress.Loopback, server.Https.Port).InTime("a connection");
        await using SslStream client = new(new NetworkStream(socket));
        await client.AuthenticateAsClientAsync(Handshakes.ClientOptions(version)).InTime("the client's handshake");
        await Raw.SendRequestAsync(client, $"/bytes/{Size}", close: true);
        await server.Events.WaitForAsync(e => e.Message.StartsWith("Request finished", StringComparison.Ordinal), "the request to end");

        // Longer than the three seconds for a client whose records could not be read.
        await Task.Delay(TimeSpan.FromSeconds(4));
        Assert.DoesNotContain(server.Events.Entries, e => e.Id.Name == "ConnectionStop");
        using MemoryStream answer = new();
        await client.CopyToAsync(answer).InTime("the rest");

        Assert.InRange(answer.Length, Size, Size + 1_000);
        Pattern.AssertAt(0, answer.ToArray().AsSpan(^Size));
        await server.Events.WaitForAsync(e => e.Id.Name == "ConnectionStop", "the connection to stop");
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task An_aborted_request_resets_the_connection(TlsMode mode)
    {
        await using Server server = await Server.StartAsync(mode);
        await using SslStream client = await server.ConnectAsync();
        await Raw.SendRequestAsync(client, "/abort");

        IOException e = await Assert.ThrowsAsync<IOException>(async () => await client.ReadAsync(new byte[1]).InTime("the reset"));

        Assert.Equal(SocketError.ConnectionReset, Assert.IsType<SocketException>(e.InnerException).SocketErrorCode);
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task A_graceful_shutdown_lets_requests_end_and_closes_idle_connections(TlsMode mode)
    {
        TaskCompletionSource goOn = new(TaskCreationOptions.RunContinuationsAsynchronously);
        Endpoints.Waiting waiting = new() { GoOn = goOn.Task };
        await using Server server = await StartWaitingAsync(mode, waiting);
        await using SslStream idle = await server.ConnectAsync();
        await Raw.SendRequestAsync(idle, "/bytes/1");
        await Raw.ReadHeadAsync(idle);
        await using SslStream busy = await server.ConnectAsync();
        await Raw.SendRequestAsync(busy, "/finish");
        await waiting.Begun.Task.InTime("the request to begin");

        Task stopping = server.StopAsync();

        using MemoryStream rest = new();
        await idle.CopyToAsync(rest).InTime("the idle connection to be closed");
        await stopping.StaysPending();
        goOn.SetResult();
        using StreamReader reader = new(busy, Encoding.Latin1);
        string answer = await reader.ReadToEndAsync().InTime();
        await stopping.InTime("the server to stop");

        Assert.Contains("\r\nfinished\r\n", answer, StringComparison.Ordinal);
        await Assert.ThrowsAsync<SocketException>(() => server.ConnectSocketAsync());
    }

    [Theory]
    [MemberData(nameof(All))]
    [Trait("waits", "mostly")]
    public async Task A_request_that_never_ends_is_answered_with_a_timeout(TlsMode mode)
    {
        await using Server server = await Server.StartAsync(
            mode, kestrel: kestrel => kestrel.Limits.RequestHeadersTimeout = TimeSpan.FromSeconds(1.5));
        await using SslStream client = await server.ConnectAsync();
        await client.WriteAsync("GET / HTTP/1.1\r\nHo"u8.ToArray()).InTime();

        using StreamReader reader = new(client, Encoding.Latin1);
        string answer = await reader.ReadToEndAsync().InTime();

        Assert.StartsWith("HTTP/1.1 408 ", answer, StringComparison.Ordinal);
    }

    private static Task<Server> StartWaitingAsync(TlsMode mode, Endpoints.Waiting waiting, Action<ListenOptions>? listen = null) =>
        Server.StartAsync(mode, listen: listen, builder: builder => builder.Services.AddSingleton(waiting));

    private static ThrownExceptions ThrownByInput() =>
        new(where => where.ToString().Contains(nameof(TlsInput), StringComparison.Ordinal));
}

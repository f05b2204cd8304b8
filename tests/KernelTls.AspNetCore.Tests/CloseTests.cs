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
using Microsoft.Extensions.DependencyInjection;
using Microsoft.Extensions.Logging;

namespace KernelTls.AspNetCore.Tests;

/// <summary>How connections end, and clients that do not behave.</summary>
public class CloseTests
{
    /// <summary>Enough of Kestrel's (one a second) for the server to see that nobody reads.</summary>
    private static readonly TimeSpan s_heartbeats = TimeSpan.FromSeconds(3);

    public static TheoryData<TlsMode> All => [.. Modes.Every];

    public static TheoryData<TlsMode, bool> Either => Modes.With(true, false);

    public static TheoryData<TlsMode> OnOpenSsl => [.. Modes.OnOpenSsl];

    public static TheoryData<TlsMode, SslProtocols> AllOnOpenSsl => Modes.AllOnOpenSsl;

    /// <summary>The stock server sends none; on OpenSSL the client learns that nothing is missing.</summary>
    [Theory]
    [MemberData(nameof(AllOnOpenSsl))]
    public async Task The_client_gets_close_notify(TlsMode mode, SslProtocols version)
    {
        await using Server server = await Server.StartAsync(mode, https => https.SslProtocols = version);
        using Socket socket = await server.ConnectSocketAsync();

        // Of this library's own stream, because the stock one takes a cut for an end.
        await using KtlsStream client = new(new NetworkStream(socket), false, Modes.OptionsOf(TlsMode.DirectOpenSsl));
        await client.AuthenticateAsClientAsync(Handshakes.ClientOptions(version)).InTime();
        await Raw.RequestAsync(client, "/bytes/100000", close: true);

        using MemoryStream answer = new();
        await client.CopyToAsync(answer).InTime("the end of the stream");

        Assert.InRange(answer.Length, 100_000, 101_000);
    }

    /// <summary>The peer's end is watched while the connection is being closed: the one must not meet what the other disposes.</summary>
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
                await Raw.RequestAsync(client, "/bytes/10", close: true);
                Assert.NotEqual(0, await client.ReadAsync(new byte[1000]).InTime("the response"));
            }
        }

        thrown.AssertNone();
    }

    /// <summary>A client that is there is not waited for: closing would have to break the wait off.</summary>
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
            await Raw.RequestAsync(client, "/finish", close: true);
            await waiting.Begun.Task.InTime("the request to begin");
            await Task.Delay(s_heartbeats);
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
        await Raw.RequestAsync(client, "/bytes/3000000", close: true);

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
            await Raw.RequestAsync(client, "/bytes/10");
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

    /// <summary>At once; without the heartbeat nothing else could tell it.</summary>
    [Theory]
    [MemberData(nameof(Either))]
    public async Task A_request_at_work_learns_that_its_client_has_gone(TlsMode mode, bool heartbeat)
    {
        foreach (string leave in new[] { "notify and close", "close", "reset" })
        {
            Endpoints.Waiting waiting = new();
            await using Server server = await StartWaitingAsync(mode, waiting, endpoint => endpoint.Use(next => connection =>
            {
                if (!heartbeat)
                {
                    connection.Features.Set<IConnectionHeartbeatFeature>(null);
                }

                return next(connection);
            }));
            SslStream client = await server.ConnectAsync();
            await Raw.RequestAsync(client, "/wait");
            await waiting.Begun.Task.InTime("the request to begin");

            if (leave == "notify and close")
            {
                await client.ShutdownAsync().InTime();
            }
            else if (leave == "reset")
            {
                ((NetworkStream)GetInner(client)).Socket.Close(0);
            }

            await client.DisposeAsync();
            await waiting.Aborted.Task.InTime($"the request to be told: {leave}");
        }
    }

    /// <summary>The end may come while the request is still being read: then nobody is there whom it could tell at once.</summary>
    [Theory]
    [MemberData(nameof(All))]
    public Task Requests_whose_clients_leave_at_once_are_told(TlsMode mode) => ToldAsync(mode, () => { });

    /// <summary>Nothing but the connection itself then holds a request that waits for nothing else.</summary>
    [Theory]
    [MemberData(nameof(All))]
    public Task Requests_whose_clients_leave_are_told_also_where_garbage_is_collected_first(TlsMode mode) => ToldAsync(mode, GC.Collect);

    private static async Task ToldAsync(TlsMode mode, Action afterEach)
    {
        const int Clients = 50;
        using CountdownEvent left = new(Clients);
        await using Server server = await Server.StartAsync(mode, application: application => application.Map("/stay", async context =>
        {
            await Task.WhenAny(Task.Delay(Timeout.Infinite, context.RequestAborted));
            left.Signal();
        }));
        for (int i = 0; i < Clients; i++)
        {
            await using SslStream client = await server.ConnectAsync();
            await Raw.RequestAsync(client, "/stay");
            await client.DisposeAsync();
            afterEach();
        }

        await Limits.Blocking(left.Wait).InTime($"all of {Clients} requests to be told");
    }

    /// <summary>It has all of its answer: a token that is cancelled now would only disturb what is left to do.</summary>
    [Theory]
    [MemberData(nameof(Either))]
    public async Task A_request_that_is_answered_is_not_aborted(TlsMode mode, bool byFile)
    {
        const int Size = 100_000;
        using PatternFile file = new(Size);
        TaskCompletionSource left = new(TaskCreationOptions.RunContinuationsAsynchronously);
        TaskCompletionSource<bool> aborted = new(TaskCreationOptions.RunContinuationsAsynchronously);
        await using Server server = await Server.StartAsync(mode, application: application => application.Map("/answer", async context =>
        {
            context.Response.ContentLength = Size;
            await (byFile ? context.Response.SendFileAsync(file.FullName) : context.Response.Body.WriteAsync(Pattern.Take(Size)).AsTask());
            await left.Task.InTime("the client to leave");
            await Task.WhenAny(Task.Delay(Timeout.Infinite, context.RequestAborted), Task.Delay(Limits.Absence));
            aborted.SetResult(context.RequestAborted.IsCancellationRequested);
        }));
        SslStream client = await server.ConnectAsync();
        await Raw.RequestAsync(client, "/answer");
        await Raw.ReadHeadAsync(client);
        await Pattern.ReceiveAsync(client, Size).InTime();
        await client.DisposeAsync();
        left.SetResult();

        Assert.False(await aborted.Task.InTime("the request"));
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task A_client_that_ends_its_sending_half_alone_still_gets_its_answer(TlsMode mode)
    {
        TaskCompletionSource goOn = new(TaskCreationOptions.RunContinuationsAsynchronously);
        Endpoints.Waiting waiting = new() { GoOn = goOn.Task };
        await using Server server = await StartWaitingAsync(mode, waiting);
        await using SslStream client = await server.ConnectAsync();
        await Raw.RequestAsync(client, "/finish");
        await waiting.Begun.Task.InTime("the request to begin");
        await client.ShutdownAsync().InTime();

        await Task.Delay(s_heartbeats);
        goOn.SetResult();
        using StreamReader reader = new(client, Encoding.Latin1);

        Assert.Contains("\r\nfinished\r\n", await reader.ReadToEndAsync().InTime(), StringComparison.Ordinal);
    }

    [Theory]
    [MemberData(nameof(All))]
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
            await Task.Delay(s_heartbeats);
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
        await Raw.RequestAsync(client, $"/bytes/{Size}");
        await Raw.ReadHeadAsync(client);

        // The server cannot have gone on: what nobody reads is in the sockets' buffers, and a little in its own.
        await Task.Delay(Limits.Absence);
        Assert.InRange(GC.GetTotalMemory(forceFullCollection: false) - before, long.MinValue, 30_000_000);
        Assert.DoesNotContain(server.Events.Entries, e => e.Id.Name == "ConnectionStop" || e.Message.StartsWith("Request finished", StringComparison.Ordinal));

        await Pattern.ReceiveAsync(client, 5_000_000).InTime();
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task A_client_that_leaves_in_the_midst_of_a_response_ends_it(TlsMode mode)
    {
        await using Server server = await Server.StartAsync(mode);
        SslStream client = await server.ConnectAsync();
        await Raw.RequestAsync(client, "/bytes/2000000000");
        await Raw.ReadHeadAsync(client);
        ((NetworkStream)GetInner(client)).Socket.Close(0);

        await server.Events.WaitForAsync(e => e.Id.Name == "ConnectionStop", "the connection to stop");
        Assert.DoesNotContain(server.Events.Entries, e => e.Level > LogLevel.Information);
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task An_aborted_request_resets_the_connection(TlsMode mode)
    {
        await using Server server = await Server.StartAsync(mode);
        await using SslStream client = await server.ConnectAsync();
        await Raw.RequestAsync(client, "/abort");

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
        await Raw.RequestAsync(idle, "/bytes/1");
        await Raw.ReadHeadAsync(idle);
        await using SslStream busy = await server.ConnectAsync();
        await Raw.RequestAsync(busy, "/finish");
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

    private static Stream GetInner(SslStream stream) =>
        (Stream)typeof(AuthenticatedStream).GetProperty(
            "InnerStream", System.Reflection.BindingFlags.Instance | System.Reflection.BindingFlags.NonPublic)!.GetValue(stream)!;
}

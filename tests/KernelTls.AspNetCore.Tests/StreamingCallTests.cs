using System.Security.Authentication;
using KernelTls.Tests;
using Microsoft.AspNetCore.Builder;
using Microsoft.AspNetCore.Http;

namespace KernelTls.AspNetCore.Tests;

/// <summary>
/// Tests calls in the manner of gRPC between HttpClient and Kestrel, both in the mode and on one connection.
/// </summary>
[Trait("cell", "race")]
public class StreamingCallTests
{
    private const int Messages = 60;
    private const int Size = 20_001;

    public static TheoryData<TlsMode> All => [.. Modes.Costly];

    [Theory]
    [MemberData(nameof(All))]
    public async Task Each_message_is_answered_before_the_next_one(TlsMode mode)
    {
        int[] sizes = [0, 1, 100, 16_384, 70_000];
        await using InteropServer server = await StartAsync(mode, EchoAsync);
        using ModeClient client = new(mode, "2.0");
        using Call call = new(client.Http, new Uri(server.Server.Https, "/call"));

        for (int i = 0; i < 100; i++)
        {
            int size = sizes[i % sizes.Length];
            await call.WriteAsync(Pattern.Take(size, i));
            byte[]? answer = await call.ReadAsync();
            Assert.Equal(size, answer!.Length);
            Pattern.AssertAt(i, answer);
        }

        call.Complete();
        Assert.Null(await call.ReadAsync());
        Assert.Equal("0", await call.TrailerAsync("grpc-status"));
        Assert.Equal("100", await call.TrailerAsync("messages"));
        AssertOneConnection(client, server);
    }

    /// <summary>
    /// In ten calls on one connection, each end sends its data without waiting for the other. It exceeds windows and
    /// buffers, so neither end can finish unless both read.
    /// </summary>
    [Theory]
    [MemberData(nameof(All))]
    public async Task Messages_stream_both_ways_at_once(TlsMode mode)
    {
        const int Calls = 10;
        await using InteropServer server = await StartAsync(mode, StreamAsync);
        using ModeClient client = new(mode, "2.0");

        await Task.WhenAll(Enumerable.Range(0, Calls).Select(async _ =>
        {
            using Call call = new(client.Http, new Uri(server.Server.Https, "/call"));
            Task sending = SendAsync(call.WriteAsync);
            await ReceiveAsync(call.ReadAsync);
            await sending;
            call.Complete();
            Assert.Null(await call.ReadAsync());
            Assert.Equal("0", await call.TrailerAsync("grpc-status"));
        })).InTime("the calls");

        AssertOneConnection(client, server);
    }

    /// <summary>
    /// Makes as many calls as KERNELTLS_REQUESTS: each is a separate stream with a message, its response, and trailers.
    /// </summary>
    [Theory]
    [MemberData(nameof(All))]
    public async Task Many_short_calls_are_each_answered(TlsMode mode)
    {
        await using InteropServer server = await StartAsync(mode, EchoAsync);
        using ModeClient client = new(mode, "2.0");

        await Parallel.ForAsync(0, Load.Requests, new ParallelOptions { MaxDegreeOfParallelism = Load.Connections }, async (i, _) =>
        {
            using Call call = new(client.Http, new Uri(server.Server.Https, "/call"));
            await call.WriteAsync(Pattern.Take(500, i));
            call.Complete();
            Pattern.AssertAt(i, await call.ReadAsync());
            Assert.Null(await call.ReadAsync());
            Assert.Equal("0", await call.TrailerAsync("grpc-status"));
        });

        AssertOneConnection(client, server);
    }

    /// <summary>The other call continues.</summary>
    [Theory]
    [MemberData(nameof(All))]
    public async Task A_call_that_is_cancelled_ends_alone(TlsMode mode)
    {
        TaskCompletionSource aborted = new(TaskCreationOptions.RunContinuationsAsynchronously);
        await using InteropServer server = await StartAsync(mode, async context =>
        {
            try
            {
                await EchoAsync(context);
            }
            catch (Exception e) when (e is IOException or OperationCanceledException)
            {
                Assert.True(aborted.TrySetResult(), "The other call was aborted too.");
            }
        });
        using ModeClient client = new(mode, "2.0");
        using Call beside = new(client.Http, new Uri(server.Server.Https, "/call"));
        using Call cancelled = new(client.Http, new Uri(server.Server.Https, "/call"));
        await ExchangeAsync(beside);
        await ExchangeAsync(cancelled);
        Task<byte[]?> reading = cancelled.ReadAsync();

        await cancelled.CancelAsync();

        await Assert.ThrowsAnyAsync<OperationCanceledException>(() => reading);
        await aborted.Task.InTime("the server to learn of it");
        await EndWellAsync(beside);
        AssertOneConnection(client, server);
    }

    /// <summary>The same with the server, which resets the stream.</summary>
    [Theory]
    [MemberData(nameof(All))]
    public async Task A_call_that_the_server_aborts_ends_alone(TlsMode mode)
    {
        await using InteropServer server = await StartAsync(mode, async context =>
        {
            if (context.Request.Query.ContainsKey("abort"))
            {
                await Call.WriteAsync(context.Response.Body, (await Call.ReadAsync(context.Request.Body))!);
                Assert.NotNull(await Call.ReadAsync(context.Request.Body));
                context.Abort();
            }
            else
            {
                await EchoAsync(context);
            }
        });
        using ModeClient client = new(mode, "2.0");
        using Call beside = new(client.Http, new Uri(server.Server.Https, "/call"));
        using Call aborted = new(client.Http, new Uri(server.Server.Https, "/call?abort"));
        await ExchangeAsync(beside);
        await ExchangeAsync(aborted);
        await aborted.WriteAsync(Pattern.Take(100));

        HttpProtocolException e = await Assert.ThrowsAsync<HttpProtocolException>(aborted.ReadAsync);

        // RFC 9113, section 7: INTERNAL_ERROR or CANCEL; Kestrel chooses.
        Assert.Contains(e.ErrorCode, (long[])[2, 8]);
        await EndWellAsync(beside);
        AssertOneConnection(client, server);
    }

    /// <summary>A call that fails before its first message has trailers nevertheless.</summary>
    [Theory]
    [MemberData(nameof(All))]
    public async Task Trailers_without_a_message_arrive(TlsMode mode)
    {
        await using InteropServer server = await StartAsync(mode, context =>
        {
            context.Response.AppendTrailer("grpc-status", "5");
            return Task.CompletedTask;
        });
        using ModeClient client = new(mode, "2.0");
        using Call call = new(client.Http, new Uri(server.Server.Https, "/call"));
        call.Complete();

        Assert.Null(await call.ReadAsync());
        Assert.Equal("5", await call.TrailerAsync("grpc-status"));
        AssertOneConnection(client, server);
    }

    private static async Task EchoAsync(HttpContext context)
    {
        context.Response.ContentType = "application/grpc";
        await context.Response.StartAsync();
        int messages = 0;
        for (; await Call.ReadAsync(context.Request.Body) is { } message; messages++)
        {
            await Call.WriteAsync(context.Response.Body, message);
        }

        context.Response.AppendTrailer("grpc-status", "0");
        context.Response.AppendTrailer("messages", $"{messages}");
    }

    /// <summary>Sends and receives at the same time.</summary>
    private static async Task StreamAsync(HttpContext context)
    {
        Task sending = SendAsync(message => Call.WriteAsync(context.Response.Body, message));
        await ReceiveAsync(() => Call.ReadAsync(context.Request.Body));
        await sending;
        Assert.Null(await Call.ReadAsync(context.Request.Body));
        context.Response.AppendTrailer("grpc-status", "0");
    }

    private static async Task SendAsync(Func<ReadOnlyMemory<byte>, Task> write)
    {
        for (int i = 0; i < Messages; i++)
        {
            await write(Pattern.Take(Size, i * Size));
        }
    }

    private static async Task ReceiveAsync(Func<Task<byte[]?>> read)
    {
        for (int i = 0; i < Messages; i++)
        {
            byte[]? message = await read();
            Assert.Equal(Size, message!.Length);
            Pattern.AssertAt(i * Size, message);
        }
    }

    private static async Task ExchangeAsync(Call call)
    {
        await call.WriteAsync(Pattern.Take(100));
        Pattern.AssertAt(0, await call.ReadAsync());
    }

    private static async Task EndWellAsync(Call call)
    {
        await ExchangeAsync(call);
        call.Complete();
        Assert.Null(await call.ReadAsync());
        Assert.Equal("0", await call.TrailerAsync("grpc-status"));
    }

    /// <summary>Asserts one connection. The kernel counts both of its ends.</summary>
    private static void AssertOneConnection(ModeClient client, InteropServer server)
    {
        Assert.Single(client.Streams);
        server.AssertConnections(2, SslProtocols.Tls13);
    }

    private static Task<InteropServer> StartAsync(TlsMode mode, RequestDelegate answer) => InteropServer.StartAsync(
        mode, application: application => application.MapPost("/call", answer));
}

using System.Net.Security;
using System.Net.Sockets;
using KernelTls.Tests;
using Microsoft.AspNetCore.Builder;
using Microsoft.AspNetCore.Connections;
using Microsoft.AspNetCore.Connections.Features;
using Microsoft.AspNetCore.Http;
using Microsoft.AspNetCore.Server.Kestrel.Core;
using Microsoft.Extensions.DependencyInjection;
using Microsoft.Extensions.Logging;

namespace KernelTls.AspNetCore.Tests;

/// <summary>Tests when a request is notified that its client has left.</summary>
public class ClientLeavesTests
{
    public static TheoryData<TlsMode> All => [.. Modes.Every];

    public static TheoryData<TlsMode, bool> Either => Modes.With(true, false);

    /// <summary>Immediately: without the heartbeat nothing else could inform the request.</summary>
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
            await Raw.SendRequestAsync(client, "/wait");
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

    /// <summary>
    /// The end may arrive while the request is still being read, when there is no request to inform yet.
    /// </summary>
    [Theory]
    [MemberData(nameof(All))]
    public Task Requests_whose_clients_leave_at_once_are_told(TlsMode mode) => ToldAsync(mode, () => { });

    /// <summary>Only the connection itself then holds a request that waits for nothing else.</summary>
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
            await Raw.SendRequestAsync(client, "/stay");
            await client.DisposeAsync();
            afterEach();
        }

        await Limits.Blocking(left.Wait).InTime($"all of {Clients} requests to be told");
    }

    /// <summary>
    /// The client has received the complete response: a canceled token would only disturb the remaining work.
    /// </summary>
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
        await Raw.SendRequestAsync(client, "/answer");
        await Raw.ReadHeadAsync(client);
        await Pattern.ReceiveAsync(client, Size).InTime();
        await client.DisposeAsync();
        left.SetResult();

        Assert.False(await aborted.Task.InTime("the request"));
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task A_client_that_leaves_in_the_midst_of_a_response_ends_it(TlsMode mode)
    {
        await using Server server = await Server.StartAsync(mode);
        SslStream client = await server.ConnectAsync();
        await Raw.SendRequestAsync(client, "/bytes/2000000000");
        await Raw.ReadHeadAsync(client);
        ((NetworkStream)GetInner(client)).Socket.Close(0);

        await server.Events.WaitForAsync(e => e.Id.Name == "ConnectionStop", "the connection to stop");
        Assert.DoesNotContain(server.Events.Entries, e => e.Level > LogLevel.Information);
    }

    private static Task<Server> StartWaitingAsync(TlsMode mode, Endpoints.Waiting waiting, Action<ListenOptions>? listen = null) =>
        Server.StartAsync(mode, listen: listen, builder: builder => builder.Services.AddSingleton(waiting));

    private static Stream GetInner(SslStream stream) =>
        (Stream)typeof(AuthenticatedStream).GetProperty(
            "InnerStream", System.Reflection.BindingFlags.Instance | System.Reflection.BindingFlags.NonPublic)!.GetValue(stream)!;
}

using System.Collections.Concurrent;
using System.Net.Security;
using System.Net.Sockets;
using System.Security.Authentication;
using System.Security.Cryptography.X509Certificates;
using KernelTls.Tests;
using Microsoft.AspNetCore.Builder;
using Microsoft.AspNetCore.Connections;
using Microsoft.AspNetCore.Connections.Features;
using Microsoft.AspNetCore.Http;
using Microsoft.AspNetCore.Server.Kestrel.Https;
using Microsoft.Extensions.DependencyInjection;

namespace KernelTls.AspNetCore.Tests;

/// <summary>
/// Tests clients that disconnect from a server whose requests may ask them for a certificate. Such a request reads, and
/// so does the watch for the client's end.
/// </summary>
[Trait("loop", "outer-kernel")]
public class DelayedCertificateCloseTests
{
    public static TheoryData<TlsMode, SslProtocols> All => Modes.All;

    public static TheoryData<TlsMode, SslProtocols, string> Leaving => Modes.AllWith("notify and close", "close", "reset");

    /// <summary>Immediately: there is no heartbeat to inform the request later.</summary>
    [Theory]
    [MemberData(nameof(Leaving))]
    public async Task A_request_at_work_learns_that_its_client_has_gone(TlsMode mode, SslProtocols version, string leave)
    {
        Endpoints.Waiting waiting = new();
        await using Server server = await StartAsync(mode, waiting);
        (SslStream client, Socket socket) = await ConnectAsync(server, version);
        await Raw.SendRequestAsync(client, "/wait");
        await waiting.Begun.Task.InTime("the request to begin");

        if (leave == "notify and close")
        {
            await client.ShutdownAsync().InTime();
        }

        socket.Close(leave == "reset" ? 0 : -1);
        await client.DisposeAsync();

        await waiting.Aborted.Task.InTime($"the request to be told: {leave}");
        AssertNobodyWasInTheWay(server);
    }

    /// <summary>
    /// The client's end arrives while its certificate is being validated. Another reader receives it, and the request
    /// is informed.
    /// </summary>
    [Theory]
    [MemberData(nameof(All))]
    public async Task A_certificate_is_had_from_a_client_that_leaves_behind_it(TlsMode mode, SslProtocols version)
    {
        TaskCompletionSource judging = new(TaskCreationOptions.RunContinuationsAsynchronously);
        TaskCompletionSource left = new(TaskCreationOptions.RunContinuationsAsynchronously);
        TaskCompletionSource<string?> asked = new(TaskCreationOptions.RunContinuationsAsynchronously);
        Endpoints.Waiting waiting = new();
        await using Server server = await StartAsync(
            mode,
            waiting,
            validation: (_, _, _) =>
            {
                judging.TrySetResult();
                return left.Task.Wait(Limits.Wait);
            },
            application: application => application.Map("/ask", async context =>
            {
                asked.SetResult((await context.Connection.GetClientCertificateAsync(CancellationToken.None))?.Subject);
                try
                {
                    await Task.Delay(Timeout.Infinite, context.RequestAborted);
                }
                catch (OperationCanceledException)
                {
                    waiting.Aborted.SetResult();
                }
            }));
        (SslStream client, Socket socket) = await ConnectAsync(server, version);
        await using SslStream disposing = client;
        await Raw.SendRequestAsync(client, "/ask");
        Task<int> answering = client.ReadAsync(new byte[1]).AsTask();
        await judging.Task.InTime("the client's certificate");

        socket.Shutdown(SocketShutdown.Send);
        await asked.Task.StaysPending();
        left.SetResult();

        Assert.Equal(Certificates.Client.Subject, await asked.Task.InTime("the certificate"));
        await waiting.Aborted.Task.InTime("the request to be told that its client has gone");
        AssertNobodyWasInTheWay(server);
        Assert.False(answering.IsCompletedSuccessfully && await answering > 0, "the request has no answer");
    }

    /// <summary>Repeated many times, because the test checks whether two readers collide.</summary>
    [Theory]
    [MemberData(nameof(All))]
    public async Task A_request_that_asks_while_its_client_leaves_is_told_so(TlsMode mode, SslProtocols version)
    {
        int connections = Cell.IsLab ? 10 : 50;
        ConcurrentQueue<Exception> failures = [];
        Endpoints.Waiting waiting = new();
        await using Server server = await StartAsync(mode, waiting, application: application => application.Map("/ask", async context =>
        {
            try
            {
                await context.Connection.GetClientCertificateAsync(CancellationToken.None);
            }
            catch (Exception e)
            {
                failures.Enqueue(e);
            }
        }));
        for (int i = 0; i < connections; i++)
        {
            (SslStream client, _) = await ConnectAsync(server, version);
            await Raw.SendRequestAsync(client, "/ask");
            await client.DisposeAsync();
        }

        await server.Events.WaitForAsync(e => e.Id.Name == "ConnectionStop", connections, "the connections to stop");
        Assert.NotEmpty(failures);
        Assert.DoesNotContain(failures, e => e is NotSupportedException or InvalidOperationException and not ObjectDisposedException);
        AssertNobodyWasInTheWay(server);
    }

    private static void AssertNobodyWasInTheWay(Server server) =>
        Assert.DoesNotContain(server.Events.Entries, e => e.Exception is NotSupportedException);

    /// <summary>Connects with a certificate, which the client sends on request.</summary>
    private static async Task<(SslStream Client, Socket Socket)> ConnectAsync(Server server, SslProtocols version)
    {
        Socket socket = await server.ConnectSocketAsync();
        SslStream client = new(new NetworkStream(socket, ownsSocket: true));
        SslClientAuthenticationOptions options = Handshakes.ClientOptions(version);
        options.ClientCertificateContext = Certificates.ClientContext;
        await client.AuthenticateAsClientAsync(options).InTime("the client's handshake");
        await Raw.SendRequestAsync(client, "/bytes/1");
        await Raw.ReadHeadAsync(client);
        Assert.Equal(1, await client.ReadAsync(new byte[1]).InTime("the first answer"));
        return (client, socket);
    }

    private static Task<Server> StartAsync(
        TlsMode mode,
        Endpoints.Waiting waiting,
        Func<X509Certificate2, X509Chain?, SslPolicyErrors, bool>? validation = null,
        Action<WebApplication>? application = null) => Server.StartAsync(
        mode,
        https =>
        {
            https.ClientCertificateMode = ClientCertificateMode.DelayCertificate;
            https.ClientCertificateValidation = validation;
            https.OnAuthenticate = (_, options) => options.CertificateChainPolicy = Certificates.Trust();
        },
        endpoint => endpoint.Use(next => connection =>
        {
            connection.Features.Set<IConnectionHeartbeatFeature>(null);
            return next(connection);
        }),
        builder: builder => builder.Services.AddSingleton(waiting),
        application: application);
}

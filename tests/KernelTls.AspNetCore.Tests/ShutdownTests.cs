using System.Net.Security;
using System.Net.Sockets;
using System.Security.Authentication;
using KernelTls.Tests;
using Microsoft.AspNetCore.Builder;
using Microsoft.Extensions.DependencyInjection;
using Microsoft.Extensions.Logging;

namespace KernelTls.AspNetCore.Tests;

/// <summary>Tests a graceful shutdown while clients continue to send.</summary>
[Trait("cell", "race")]
public class ShutdownTests
{
    // Types of frames (RFC 9113, section 6).
    private const byte Settings = 4;
    private const byte Ping = 6;

    public static TheoryData<TlsMode> All => [.. Modes.Every];

    public static TheoryData<TlsMode, string> BothProtocols => Modes.CostlyWith("1.1", "2.0");

    /// <summary>
    /// Every request that reached the application gets a complete response; the rest are refused; no connection is
    /// left.
    /// </summary>
    [Theory]
    [MemberData(nameof(BothProtocols))]
    public async Task Under_load_no_request_that_has_begun_is_lost(TlsMode mode, string version)
    {
        const int Size = 50_001;
        int clients = Cell.IsLab ? 5 : 20;
        int begun = 0;
        TaskCompletionSource warm = new(TaskCreationOptions.RunContinuationsAsynchronously);
        TaskCompletionSource goOn = new(TaskCreationOptions.RunContinuationsAsynchronously);
        Endpoints.Waiting waiting = new() { GoOn = goOn.Task };
        await using InteropServer server = await InteropServer.StartAsync(
            mode,
            builder: builder => builder.Services.AddSingleton(waiting),
            application: application => application.Use((context, next) =>
            {
                if (Interlocked.Increment(ref begun) == 10 * clients)
                {
                    warm.SetResult();
                }

                return next(context);
            }));
        using HttpClient held = Server.CreateClient(version);
        Task<string> holding = held.GetStringAsync(new Uri(server.Server.Https, "/finish"));
        await waiting.Begun.Task.InTime("the held request to begin");
        Task<Answers>[] asking = [.. Enumerable.Range(0, clients).Select(_ => AskUntilRefusedAsync(server.Server.Https, version, Size))];
        await await Task.WhenAny([warm.Task, .. asking]).InTime("the load");
        Assert.True(warm.Task.IsCompleted, "A client was refused before the shutdown.");
        await Offloads.AssertInAsync(mode, held, server.Server.Https);

        Task stopping = server.Server.StopAsync();

        Answers[] answered = await Task.WhenAll(asking).InTime("the clients to be refused");
        await stopping.StaysPending();
        goOn.SetResult();
        Assert.Equal("finished", await holding.InTime("the held request's answer"));
        await stopping.InTime("the server to stop");

        // The held request, and the one that checks the mode.
        int complete = answered.Sum(a => a.Count) + 2;
        Assert.True(
            begun == complete,
            $"{begun} requests began, {complete} responses are complete. The clients ended by: {string.Join('\n', answered.Select(a => a.End))}");
        Assert.DoesNotContain(server.Server.Events.Entries, e => e.Level > LogLevel.Information);
        await server.AssertNoneIsLeftAsync();
    }

    /// <summary>
    /// A client of HTTP/2 that sends after the server's end is not reset: HttpClient would abandon the responses that it
    /// has not read yet. The stock server resets it.
    /// </summary>
    [Theory]
    [MemberData(nameof(All))]
    public async Task A_client_that_still_sends_is_not_reset(TlsMode mode)
    {
        await using Server server = await Server.StartAsync(mode);
        using Socket socket = await server.ConnectSocketAsync();
        await using SslStream client = new(new NetworkStream(socket));
        SslClientAuthenticationOptions options = Handshakes.ClientOptions(SslProtocols.Tls13);
        options.ApplicationProtocols = [SslApplicationProtocol.Http2];
        await client.AuthenticateAsClientAsync(options).InTime("the handshake");
        await client.WriteAsync((byte[])[.. HttpFaultBody.Http2Preface, .. HttpFaultBody.Http2Frame(Settings, 0, 0, [])]);
        byte[] buffer = new byte[1000];
        Assert.NotEqual(0, await client.ReadAsync(buffer).InTime("the server's settings"));

        Task stopping = server.StopAsync();

        while (await client.ReadAsync(buffer).InTime("the end of the connection") != 0)
        {
        }

        // The server's FIN follows its close_notify. It has closed its socket, or waits up to a second for the client.
        Assert.Equal(0, await socket.ReceiveAsync(buffer).InTime("the server's FIN"));
        Task sending = SendPingsAsync(client);
        if (!Modes.OnOpenSsl.Contains(mode))
        {
            await Assert.ThrowsAsync<IOException>(() => sending.InTime("the reset"));
        }
        else
        {
            await sending.InTime("the frames to be sent");
        }

        // The client does not close. The server does not wait for it without limit.
        await stopping.InTime("the server to stop");
    }

    private static async Task SendPingsAsync(SslStream client)
    {
        for (int i = 0; i < 3; i++)
        {
            await client.WriteAsync(HttpFaultBody.Http2Frame(Ping, 0, 0, new byte[8]));
        }
    }

    /// <summary>Sends requests until one fails. Each response before that must be complete.</summary>
    private static async Task<Answers> AskUntilRefusedAsync(Uri server, string version, int size)
    {
        using HttpClient client = Server.CreateClient(version);
        int answered = 0;
        try
        {
            while (true)
            {
                byte[] body = await client.GetByteArrayAsync(new Uri(server, $"/bytes/{size}"));
                Assert.Equal(size, body.Length);
                Pattern.AssertAt(0, body);
                answered++;
            }
        }
        catch (HttpRequestException e)
        {
            return new Answers(answered, e);
        }
    }

    /// <summary>The number of responses, and the failure of the request after them.</summary>
    private sealed record Answers(int Count, HttpRequestException End);
}

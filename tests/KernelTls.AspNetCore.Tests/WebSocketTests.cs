using System.Net.WebSockets;
using KernelTls.Tests;
using Microsoft.AspNetCore.Builder;
using Microsoft.AspNetCore.Http;

namespace KernelTls.AspNetCore.Tests;

/// <summary>Tests ClientWebSocket with an invoker: its connection is that of the invoker's handler.</summary>
public class WebSocketTests
{
    private const int Size = 300_001;

    public static TheoryData<TlsMode, string> BothProtocols => Modes.With("1.1", "2.0");

    [Theory]
    [MemberData(nameof(BothProtocols))]
    public async Task Messages_pass_both_ways(TlsMode mode, string version)
    {
        await using Server server = await Server.StartAsync(mode, application: application =>
        {
            application.UseWebSockets();
            application.Map("/socket", EchoAsync);
        });
        using ModeClient client = new(mode, version);
        using ClientWebSocket socket = new();
        socket.Options.HttpVersion = Version.Parse(version);
        socket.Options.HttpVersionPolicy = HttpVersionPolicy.RequestVersionExact;
        UriBuilder address = new(server.Https) { Scheme = "wss", Path = "/socket" };

        // The client has asserted the mode of its only connection.
        await socket.ConnectAsync(address.Uri, client.Http, CancellationToken.None).InTime("the connection");
        Assert.Single(client.Streams);
        byte[] sent = Pattern.Take(Size);
        await socket.SendAsync(sent, WebSocketMessageType.Binary, endOfMessage: true, CancellationToken.None).InTime("the message");
        byte[] received = new byte[Size];
        for (int length = 0; length < Size;)
        {
            length += (await socket.ReceiveAsync(received.AsMemory(length), CancellationToken.None).AsTask().InTime("the answer")).Count;
        }

        Assert.Equal(sent, received);
        await socket.CloseAsync(WebSocketCloseStatus.NormalClosure, "done", CancellationToken.None).InTime("the end");
        Assert.Equal(WebSocketState.Closed, socket.State);
    }

    private static async Task EchoAsync(HttpContext context)
    {
        using WebSocket socket = await context.WebSockets.AcceptWebSocketAsync();
        byte[] buffer = new byte[50_000];
        while (await socket.ReceiveAsync(buffer, context.RequestAborted) is { MessageType: not WebSocketMessageType.Close } part)
        {
            await socket.SendAsync(buffer.AsMemory(0, part.Count), part.MessageType, part.EndOfMessage, context.RequestAborted);
        }

        await socket.CloseAsync(WebSocketCloseStatus.NormalClosure, "done", context.RequestAborted);
    }
}

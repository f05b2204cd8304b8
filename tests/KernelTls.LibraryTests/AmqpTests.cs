using KernelTls.LibraryTests.Servers;
using KernelTls.Tests;
using Microsoft.Azure.Amqp;
using Microsoft.Azure.Amqp.Framing;

namespace KernelTls.LibraryTests;

/// <summary>Tests Microsoft.Azure.Amqp, whose stream below SslStream is known, with AMQPNetLite's listener.</summary>
[Trait("host", "yes")]
public sealed class AmqpTests() : LibraryTest("Amqp.Net", "Microsoft.Azure.Amqp")
{
    private const int LargeSize = 3_000_001;

    private readonly AmqpServer _server = new();

    [Fact]
    public async Task Many_small_and_a_large_request()
    {
        AmqpConnection connection = await ConnectAsync();
        RequestResponseAmqpLink link = await AttachAsync(connection);
        for (int i = 0; i < 300; i++)
        {
            Assert.Equal(i, BitConverter.ToInt32(await RequestAsync(link, BitConverter.GetBytes(i)).InTime($"answer {i}")));
        }

        byte[] large = await RequestAsync(link, Pattern.Take(LargeSize)).InTime("the large answer");
        Assert.Equal(LargeSize, large.Length);
        Pattern.AssertAt(0, large);
        await connection.CloseAsync(Limits.Wait).InTime("the connection's end");
        Assert.Equal("CN=a client", _server.Client);
        Assert.Equal(2, Handshakes);
    }

    [Fact]
    public async Task A_cancelled_request_leaves_a_connection_that_works()
    {
        AmqpConnection connection = await ConnectAsync();
        RequestResponseAmqpLink link = await AttachAsync(connection);
        using CancellationTokenSource cancellation = new();
        Task requesting = RequestAsync(link, AmqpServer.Silent, cancellation.Token);
        await _server.SilentArrived.Task.InTime("the request at the server");
        await cancellation.CancelAsync();

        await Assert.ThrowsAnyAsync<OperationCanceledException>(() => requesting).InTime("the cancelled request");

        Assert.Equal([2], await RequestAsync(link, [2]).InTime("the answer"));
        await connection.CloseAsync(Limits.Wait).InTime("the connection's end");
        Assert.Equal(2, Handshakes);
    }

    [Fact]
    public async Task A_client_connects_again_when_the_server_has_restarted()
    {
        AmqpConnection connection = await ConnectAsync();
        TaskCompletionSource closed = new(TaskCreationOptions.RunContinuationsAsynchronously);
        connection.Closed += (_, _) => closed.TrySetResult();
        await AttachAsync(connection);

        _server.Stop();
        await closed.Task.InTime("the client to hear of it");
        _server.Start();
        AmqpConnection next = await ConnectAsync();
        Assert.Equal([1, 2, 3], await RequestAsync(await AttachAsync(next), [1, 2, 3]).InTime("the answer"));

        await next.CloseAsync(Limits.Wait).InTime("the connection's end");
        Assert.Equal(4, Handshakes);
    }

    /// <summary>The library then closes the socket, and not the SslStream, while a read of the SslStream waits.</summary>
    [Fact]
    public async Task A_connection_that_is_aborted_fails_the_requests_on_it()
    {
        AmqpConnection connection = await ConnectAsync();
        RequestResponseAmqpLink link = await AttachAsync(connection);
        Task requesting = RequestAsync(link, AmqpServer.Silent);
        await _server.SilentArrived.Task.InTime("the request at the server");

        connection.Abort();

        await Assert.ThrowsAnyAsync<OperationCanceledException>(() => requesting).InTime("the failed request");
    }

    protected override Task StartAsync()
    {
        _server.Start();
        return Task.CompletedTask;
    }

    protected override Task StopAsync()
    {
        _server.Dispose();
        return Task.CompletedTask;
    }

    private async Task<AmqpConnection> ConnectAsync()
    {
        AmqpConnectionFactory factory = new();
        factory.TlsSettings.Certificate = Certificates.Client;
        return await factory.OpenConnectionAsync($"amqps://127.0.0.1:{_server.Port}", Limits.Wait).InTime("a connection");
    }

    private static async Task<RequestResponseAmqpLink> AttachAsync(AmqpConnection connection)
    {
        AmqpSession session = connection.CreateSession(new AmqpSessionSettings());
        await session.OpenAsync(Limits.Wait).InTime("a session");
        RequestResponseAmqpLink link = new("request", session, AmqpServer.Node, null);
        await link.OpenAsync(Limits.Wait).InTime("a link");
        return link;
    }

    private static async Task<byte[]> RequestAsync(RequestResponseAmqpLink link, byte[] body, CancellationToken cancellationToken = default)
    {
        using AmqpMessage request = AmqpMessage.Create(new Data { Value = new ArraySegment<byte>(body) });
        using AmqpMessage answer = await link.RequestAsync(request, cancellationToken);
        return [.. answer.DataBody.SelectMany(data => (ArraySegment<byte>)data.Value)];
    }
}

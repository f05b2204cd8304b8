using System.Security.Cryptography.X509Certificates;
using System.Threading.Channels;
using KernelTls.LibraryTests.Servers;
using KernelTls.Tests;
using RabbitMQ.Client;
using RabbitMQ.Client.Events;

namespace KernelTls.LibraryTests;

/// <summary>Tests RabbitMQ.Client, which has no blocking calls, with RabbitMQ, which requires a client certificate.</summary>
public sealed class RabbitTests(RabbitServer server) : LibraryTest("RabbitMQ.Client"), IClassFixture<RabbitServer>
{
    private const int LargeSize = 3_000_001;

    [Fact]
    public async Task Many_small_and_a_large_message()
    {
        await using IConnection connection = await ConnectAsync(server.Port);
        await using IChannel channel = await OpenAsync(connection);
        ChannelReader<byte[]> received = await ConsumeAsync(channel, "many");

        for (int i = 0; i < 200; i++)
        {
            await PublishAsync(channel, "many", BitConverter.GetBytes(i));
        }

        await PublishAsync(channel, "many", Pattern.Take(LargeSize));

        for (int i = 0; i < 200; i++)
        {
            Assert.Equal(i, BitConverter.ToInt32(await received.ReadAsync().InTime($"message {i}")));
        }

        byte[] large = await received.ReadAsync().InTime("the large message");
        Assert.Equal(LargeSize, large.Length);
        Pattern.AssertAt(0, large);
        Assert.Equal(1, Handshakes);
    }

    [Fact]
    public async Task A_cancelled_wait_leaves_a_connection_that_works()
    {
        await using IConnection connection = await ConnectAsync(server.Port);
        await using IChannel channel = await OpenAsync(connection);
        using CancellationTokenSource cancellation = new();
        await cancellation.CancelAsync();

        await Assert.ThrowsAnyAsync<OperationCanceledException>(
            () => channel.QueueDeclareAsync("cancelled", cancellationToken: cancellation.Token)).InTime("the cancelled declaration");

        Assert.True(connection.IsOpen);
        ChannelReader<byte[]> received = await ConsumeAsync(channel, "after");
        await PublishAsync(channel, "after", [1]);
        Assert.Equal([1], await received.ReadAsync().InTime("the message"));
        Assert.Equal(1, Handshakes);
    }

    /// <summary>The test cuts the connection instead of restarting the server, which takes long to start.</summary>
    [Fact]
    public async Task A_lost_connection_is_replaced()
    {
        await using CutRelay relay = new(server.Port);
        await using IConnection connection = await ConnectAsync(relay.Port);
        await using IChannel channel = await OpenAsync(connection);
        ChannelReader<byte[]> received = await ConsumeAsync(channel, "lost");
        TaskCompletionSource recovered = new(TaskCreationOptions.RunContinuationsAsynchronously);
        connection.RecoverySucceededAsync += (_, _) =>
        {
            recovered.TrySetResult();
            return Task.CompletedTask;
        };

        relay.Cut();
        await recovered.Task.InTime("the connection's recovery");
        await PublishAsync(channel, "lost", [1]);

        Assert.Equal([1], await received.ReadAsync().InTime("the message"));
        Assert.Equal(2, Handshakes);
    }

    protected override string ServerErrors => server.Errors;

    protected override Task StartAsync() => server.StartAsync();

    private static async Task<IConnection> ConnectAsync(int port) => await new ConnectionFactory
    {
        HostName = "127.0.0.1",
        Port = port,
        Ssl = new SslOption("localhost", enabled: true) { Certs = new X509CertificateCollection { Certificates.Client } },
        AutomaticRecoveryEnabled = true,
        NetworkRecoveryInterval = TimeSpan.FromMilliseconds(100),
        RequestedConnectionTimeout = Limits.Wait,
        HandshakeContinuationTimeout = Limits.Wait,
    }.CreateConnectionAsync().InTime("a connection");

    private static Task<IChannel> OpenAsync(IConnection connection) => connection.CreateChannelAsync(
        new CreateChannelOptions(publisherConfirmationsEnabled: true, publisherConfirmationTrackingEnabled: true)).InTime("a channel");

    private static async Task<ChannelReader<byte[]>> ConsumeAsync(IChannel channel, string queue)
    {
        Channel<byte[]> messages = Channel.CreateUnbounded<byte[]>();
        await channel.QueueDeclareAsync(queue).InTime("a queue");
        AsyncEventingBasicConsumer consumer = new(channel);
        consumer.ReceivedAsync += async (_, e) => await messages.Writer.WriteAsync(e.Body.ToArray());
        await channel.BasicConsumeAsync(queue, autoAck: true, consumer).InTime("a consumer");
        return messages.Reader;
    }

    private static Task PublishAsync(IChannel channel, string queue, byte[] body) =>
        channel.BasicPublishAsync("", queue, body).InTime("the server's confirmation");
}

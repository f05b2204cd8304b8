using KernelTls.LibraryTests.Servers;
using KernelTls.Tests;
using NATS.Client.Core;
using TlsMode = NATS.Client.Core.TlsMode;

namespace KernelTls.LibraryTests;

/// <summary>Tests NATS.Net, which has no blocking calls, with NATS, which requires a client certificate.</summary>
public sealed class NatsTests(NatsServer server, HandshakeFirstNatsServer handshakeFirstServer)
    : LibraryTest("NATS.Client.Core"), IClassFixture<NatsServer>, IClassFixture<HandshakeFirstNatsServer>
{
    private const int LargeSize = 3_000_001;

    private readonly TemporaryDirectory _files = new();

    /// <summary>The library and the server speak plain text first and then upgrade the connection, or begin with TLS.</summary>
    [Theory]
    [InlineData(false)]
    [InlineData(true)]
    public async Task Many_small_and_a_large_message(bool handshakeFirst)
    {
        NatsServer used = handshakeFirst ? handshakeFirstServer : server;
        await used.StartAsync();
        await using NatsConnection publisher = await ConnectAsync(used);
        await using NatsConnection subscriber = await ConnectAsync(used);
        await using INatsSub<byte[]> received = await SubscribeAsync(subscriber, "many");

        for (int i = 0; i < 2000; i++)
        {
            await publisher.PublishAsync("many", BitConverter.GetBytes(i)).InTime("a publication");
        }

        await publisher.PublishAsync("many", Pattern.Take(LargeSize)).InTime("the large publication");

        for (int i = 0; i < 2000; i++)
        {
            Assert.Equal(i, BitConverter.ToInt32(await NextAsync(received)));
        }

        byte[] large = await NextAsync(received);
        Assert.Equal(LargeSize, large.Length);
        Pattern.AssertAt(0, large);
        Assert.Equal(2, Handshakes);
    }

    [Fact]
    public async Task Requests_are_answered()
    {
        await using NatsConnection asker = await ConnectAsync();
        await using NatsConnection answerer = await ConnectAsync();
        await using INatsSub<byte[]> requests = await SubscribeAsync(answerer, "echo");
        Task answering = AnswerAsync(requests);
        for (int i = 0; i <= 100; i++)
        {
            byte[] body = Pattern.Take(i == 100 ? LargeSize : i + 1);
            NatsMsg<byte[]> answer = await asker.RequestAsync<byte[], byte[]>("echo", body).InTime($"answer {i}");
            Assert.Equal(body, answer.Data!);
        }

        await requests.UnsubscribeAsync().InTime("the end of the subscription");
        await answering.InTime("the end of the answers");
        Assert.Equal(2, Handshakes);
    }

    [Fact]
    public async Task A_cancelled_request_leaves_a_connection_that_works()
    {
        await using NatsConnection connection = await ConnectAsync();
        await using INatsSub<byte[]> received = await SubscribeAsync(connection, "unanswered");
        using CancellationTokenSource cancellation = new();

        Task request = connection.RequestAsync<byte[], byte[]>("unanswered", Pattern.Take(LargeSize), cancellationToken: cancellation.Token).AsTask();
        Pattern.AssertAt(0, await NextAsync(received));
        await cancellation.CancelAsync();
        await Assert.ThrowsAnyAsync<OperationCanceledException>(() => request).InTime("the cancelled request");

        await connection.PublishAsync("unanswered", new byte[] { 1 }).InTime("a publication");
        Assert.Equal([1], await NextAsync(received));
        Assert.Equal(1, Handshakes);
    }

    [Fact]
    public async Task The_client_connects_again_when_the_server_has_restarted()
    {
        await using NatsConnection connection = await ConnectAsync();
        await using INatsSub<byte[]> received = await SubscribeAsync(connection, "kept");
        TaskCompletionSource lost = new(TaskCreationOptions.RunContinuationsAsynchronously);
        TaskCompletionSource opened = new(TaskCreationOptions.RunContinuationsAsynchronously);
        connection.ConnectionDisconnected += (_, _) => Complete(lost);
        connection.ConnectionOpened += (_, _) => Complete(opened);

        await server.StopAsync();
        await lost.Task.InTime("the client to hear of it");
        await server.StartAsync();
        await opened.Task.InTime("a connection to the new server");
        await connection.PublishAsync("kept", new byte[] { 1, 2 }).InTime("a publication");

        Assert.Equal([1, 2], await NextAsync(received));
        Assert.Equal(2, Handshakes);
    }

    [Fact]
    public async Task Without_a_certificate_the_server_refuses()
    {
        await Assert.ThrowsAsync<NatsException>(() => ConnectAsync(hasCertificate: false));
        BeginCount();

        await using NatsConnection connection = await ConnectAsync();
        Assert.Equal(NatsConnectionState.Open, connection.ConnectionState);
    }

    protected override string ServerErrors => server.Errors + handshakeFirstServer.Errors;

    protected override async Task StartAsync()
    {
        await server.StartAsync();
        Certificates.WritePem(Certificates.Client, _files.FullName);
    }

    protected override Task StopAsync()
    {
        _files.Dispose();
        return Task.CompletedTask;
    }

    private Task<NatsConnection> ConnectAsync(bool hasCertificate = true) => ConnectAsync(server, hasCertificate);

    private async Task<NatsConnection> ConnectAsync(NatsServer server, bool hasCertificate = true)
    {
        NatsConnection connection = new(new NatsOpts
        {
            Url = $"nats://127.0.0.1:{server.Port}",
            TlsOpts = new NatsTlsOpts
            {
                Mode = server.IsHandshakeFirst ? TlsMode.Implicit : TlsMode.Require,
                CertFile = hasCertificate ? _files["certificate.pem"] : null,
                KeyFile = hasCertificate ? _files["key.pem"] : null,
            },
            ConnectTimeout = Limits.Wait,
            RequestTimeout = Limits.Wait,
            ReconnectWaitMin = TimeSpan.FromMilliseconds(100),
        });
        await connection.ConnectAsync().InTime("a connection");
        return connection;
    }

    /// <summary>Subscribes, and waits until the server knows.</summary>
    private static async Task<INatsSub<byte[]>> SubscribeAsync(NatsConnection connection, string subject)
    {
        INatsSub<byte[]> subscription = await connection.SubscribeCoreAsync<byte[]>(subject).InTime("a subscription");
        await connection.PingAsync().InTime("the server's answer");
        return subscription;
    }

    private static async Task<byte[]> NextAsync(INatsSub<byte[]> subscription) => (await subscription.Msgs.ReadAsync().InTime("a message")).Data!;

    private static async Task AnswerAsync(INatsSub<byte[]> requests)
    {
        await foreach (NatsMsg<byte[]> request in requests.Msgs.ReadAllAsync())
        {
            await request.ReplyAsync(request.Data);
        }
    }

    private static ValueTask Complete(TaskCompletionSource source)
    {
        source.TrySetResult();
        return ValueTask.CompletedTask;
    }
}

using System.Buffers;
using System.Net;
using System.Security.Cryptography.X509Certificates;
using System.Threading.Channels;
using KernelTls.Tests;
using MQTTnet;
using MQTTnet.Exceptions;
using MQTTnet.Protocol;
using MQTTnet.Server;

namespace KernelTls.LibraryTests;

/// <summary>Tests MQTTnet's client with MQTTnet's server. Both ends are woven and in this process.</summary>
[Trait("host", "yes")]
public sealed class MqttTests() : LibraryTest("MQTTnet", "MQTTnet.Server")
{
    private const int LargeSize = 3_000_001;

    private readonly ReservedPort _port = new();
    private MqttServer _server = null!;

    [Fact]
    public async Task Many_small_and_a_large_message()
    {
        using IMqttClient subscriber = await ConnectAsync();
        using IMqttClient publisher = await ConnectAsync();
        ChannelReader<byte[]> received = await SubscribeAsync(subscriber);

        for (int i = 0; i < 300; i++)
        {
            await PublishAsync(publisher, BitConverter.GetBytes(i)).InTime("a publication");
        }

        await PublishAsync(publisher, Pattern.Take(LargeSize)).InTime("the large publication");

        for (int i = 0; i < 300; i++)
        {
            Assert.Equal(i, BitConverter.ToInt32(await received.ReadAsync().InTime($"message {i}")));
        }

        byte[] large = await received.ReadAsync().InTime("the large message");
        Assert.Equal(LargeSize, large.Length);
        Pattern.AssertAt(0, large);
        Assert.Equal(4, Handshakes);
    }

    [Fact]
    public async Task A_cancelled_publication_leaves_a_client_that_connects_again()
    {
        using IMqttClient client = await ConnectAsync();
        ChannelReader<byte[]> received = await SubscribeAsync(client);
        using CancellationTokenSource cancellation = new();
        TaskCompletionSource arrived = new(TaskCreationOptions.RunContinuationsAsynchronously);
        TaskCompletionSource goesOn = new(TaskCreationOptions.RunContinuationsAsynchronously);
        _server.InterceptingPublishAsync += async e =>
        {
            if (e.ApplicationMessage.Topic == "held")
            {
                arrived.TrySetResult();
                await goesOn.Task.InTime("the end of the test's wait");
            }
        };

        Task publishing = PublishAsync(client, [1], "held", cancellation.Token);
        await arrived.Task.InTime("the publication at the server");
        await cancellation.CancelAsync();

        // The library reports a cancelled wait by this exception.
        await Assert.ThrowsAsync<MqttCommunicationTimedOutException>(() => publishing).InTime("the cancelled publication");
        goesOn.SetResult();

        if (!client.IsConnected)
        {
            await client.ConnectAsync(Options()).InTime("a connection");
            received = await SubscribeAsync(client);
        }

        await PublishAsync(client, [2]).InTime("a publication");
        Assert.Equal([2], await received.ReadAsync().InTime("the message"));
    }

    [Fact]
    public async Task A_client_connects_again_when_the_server_has_restarted()
    {
        using IMqttClient client = await ConnectAsync();
        TaskCompletionSource disconnected = new(TaskCreationOptions.RunContinuationsAsynchronously);
        client.DisconnectedAsync += _ =>
        {
            disconnected.TrySetResult();
            return Task.CompletedTask;
        };

        await StopAsync();
        await disconnected.Task.InTime("the client to hear of it");
        await StartAsync();
        await client.ConnectAsync(Options()).InTime("a connection to the new server");
        ChannelReader<byte[]> received = await SubscribeAsync(client);
        await PublishAsync(client, [1, 2, 3]).InTime("a publication");

        Assert.Equal([1, 2, 3], await received.ReadAsync().InTime("the message"));
        Assert.Equal(4, Handshakes);
    }

    /// <summary>The server requires a client certificate.</summary>
    [Fact]
    public async Task The_server_gets_the_client_s_certificate()
    {
        TaskCompletionSource<string?> name = new(TaskCreationOptions.RunContinuationsAsynchronously);
        _server.ValidatingConnectionAsync += e =>
        {
            name.TrySetResult(e.ClientCertificate?.Subject);
            return Task.CompletedTask;
        };
        using IMqttClient client = await ConnectAsync();

        Assert.Equal("CN=a client", await name.Task.InTime("the server to see the client"));
    }

    protected override async Task StartAsync()
    {
        MqttServerOptions options = new MqttServerOptionsBuilder()
            .WithoutDefaultEndpoint()
            .WithEncryptedEndpoint()
            .WithEncryptedEndpointBoundIPAddress(IPAddress.Loopback)
            .WithEncryptedEndpointBoundIPV6Address(IPAddress.None)
            .WithEncryptedEndpointPort(_port.Number)
            .WithEncryptionCertificate(Certificates.Ecdsa)
            .WithClientCertificate((_, certificate, _, _) => certificate is not null)
            .Build();
        options.TlsEndpointOptions.ReuseAddress = true;
        _server = new MqttServerFactory().CreateMqttServer(options);
        await _server.StartAsync().InTime("the server's start");
    }

    protected override async Task StopAsync()
    {
        await _server.StopAsync().InTime("the server's end");
        _server.Dispose();
    }

    private MqttClientOptions Options() => new MqttClientOptionsBuilder()
        .WithTcpServer("127.0.0.1", _port.Number)
        .WithTlsOptions(tls => tls.UseTls().WithTargetHost("localhost").WithRevocationMode(X509RevocationMode.NoCheck).WithClientCertificates(new X509Certificate2Collection(Certificates.Client)))
        .WithTimeout(Limits.Wait)
        .Build();

    private async Task<IMqttClient> ConnectAsync()
    {
        IMqttClient client = new MqttClientFactory().CreateMqttClient();
        MqttClientConnectResult result = await client.ConnectAsync(Options()).InTime("a connection");
        Assert.Equal(MqttClientConnectResultCode.Success, result.ResultCode);
        return client;
    }

    private static async Task<ChannelReader<byte[]>> SubscribeAsync(IMqttClient client)
    {
        Channel<byte[]> messages = Channel.CreateUnbounded<byte[]>();
        client.ApplicationMessageReceivedAsync += async e => await messages.Writer.WriteAsync(e.ApplicationMessage.Payload.ToArray());
        await client.SubscribeAsync("news", MqttQualityOfServiceLevel.AtLeastOnce).InTime("a subscription");
        return messages.Reader;
    }

    private static Task<MqttClientPublishResult> PublishAsync(
        IMqttClient client, byte[] payload, string topic = "news", CancellationToken cancellationToken = default) => client.PublishAsync(
            new MqttApplicationMessage
            {
                Topic = topic,
                Payload = new ReadOnlySequence<byte>(payload),
                QualityOfServiceLevel = MqttQualityOfServiceLevel.AtLeastOnce,
            },
            cancellationToken);
}

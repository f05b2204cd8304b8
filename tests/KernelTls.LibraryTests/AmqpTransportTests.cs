using KernelTls.LibraryTests.Servers;
using KernelTls.Tests;
using Microsoft.Azure.Amqp;
using Microsoft.Azure.Amqp.Transport;

namespace KernelTls.LibraryTests;

/// <summary>
/// Tests the transports of Microsoft.Azure.Amqp, of which both ends are woven and in this process: TLS from the first byte, and TLS after a
/// header of the protocol, with and without buffers that may receive more than a read asks for.
/// </summary>
[Trait("host", "yes")]
public sealed class AmqpTransportTests() : LibraryTest("Microsoft.Azure.Amqp")
{
    private const int LargeSize = 3_000_001;

    private static readonly byte[] s_header = [.. "AMQP"u8, 0, 1, 0, 0];

    [Theory]
    [InlineData(false, -1)]
    [InlineData(false, 0)]
    [InlineData(false, 65_536)]
    [InlineData(true, -1)]
    [InlineData(true, 0)]
    [InlineData(true, 65_536)]
    public async Task Bytes_in_both_directions(bool upgrades, int bufferSize)
    {
        using SocketPair sockets = await SocketPair.ConnectAsync();
        TransportBase tcpClient = AmqpPair.Tcp(sockets.Client, bufferSize);
        TransportBase tcpServer = AmqpPair.Tcp(sockets.Server, bufferSize);
        (TransportBase client, TransportBase server) = upgrades ? await UpgradeAsync(tcpClient, tcpServer) : await ConnectAsync(tcpClient, tcpServer);
        byte[] sent = Pattern.Take(LargeSize);
        foreach ((TransportBase from, TransportBase to) in new[] { (client, server), (server, client) })
        {
            for (int i = 0; i < 100; i++)
            {
                await WriteAsync(from, BitConverter.GetBytes(i)).InTime($"sending {i}");
                Assert.Equal(i, BitConverter.ToInt32(await ReadAsync(to, sizeof(int)).InTime($"receiving {i}")));
            }

            Task writing = WriteAsync(from, sent);
            byte[] received = await ReadAsync(to, LargeSize).InTime("receiving many bytes");
            await writing.InTime("sending many bytes");
            Assert.Equal(sent, received);
        }

        await client.CloseAsync(Limits.Wait).InTime("the client's end");
        Assert.Empty(await ReadAsync(server, 1).InTime("the end of the stream"));
        await server.CloseAsync(Limits.Wait).InTime("the server's end");
        Assert.Equal(2, Handshakes);
    }

    /// <summary>Puts TLS on two transports at once.</summary>
    private static async Task<(TransportBase Client, TransportBase Server)> ConnectAsync(TransportBase tcpClient, TransportBase tcpServer)
    {
        TlsTransport client = new(tcpClient, ClientSettings());
        TlsTransport server = new(tcpServer, ServerSettings());
        await Task.WhenAll(client.OpenAsync(Limits.Wait), server.OpenAsync(Limits.Wait)).InTime("a handshake");
        return (client, server);
    }

    /// <summary>Puts TLS on two transports after a header.</summary>
    private static async Task<(TransportBase Client, TransportBase Server)> UpgradeAsync(TransportBase tcpClient, TransportBase tcpServer)
    {
        TaskCompletionSource<TransportBase> accepted = new(TaskCreationOptions.RunContinuationsAsynchronously);
        AmqpTransportListener listener = new([new AmqpPair.Listener(tcpServer)], Settings(ServerSettings()));
        listener.Listen((_, args) => accepted.TrySetResult(args.Transport));
        AmqpTransportInitiator initiator = new(Settings(ClientSettings()), new AmqpPair.Settings(tcpClient));
        TransportBase client = await initiator.ConnectAsync(CancellationToken.None).InTime("a handshake");

        // The server's transport is complete when it has read the header of the protocol above TLS, which its user answers.
        await WriteAsync(client, s_header).InTime("sending a header");
        return (client, await accepted.Task.InTime("the server's end of the connection"));
    }

    private static TlsTransportSettings ClientSettings() => new() { TargetHost = "localhost" };

    private static TlsTransportSettings ServerSettings() => new(null, isInitiator: false) { Certificate = Certificates.Ecdsa };

    private static AmqpSettings Settings(TlsTransportSettings settings)
    {
        TlsTransportProvider tls = new(settings);
        tls.Versions.Add(new AmqpVersion(1, 0, 0));
        AmqpTransportProvider amqp = new();
        amqp.Versions.Add(new AmqpVersion(1, 0, 0));
        AmqpSettings all = new();
        all.TransportProviders.Add(tls);
        all.TransportProviders.Add(amqp);
        return all;
    }

    private static Task<int> WriteAsync(TransportBase transport, byte[] bytes)
    {
        TransportAsyncCallbackArgs args = new();
        args.SetBuffer(bytes, 0, bytes.Length);
        return RunAsync(args, transport.WriteAsync);
    }

    /// <summary>Reads so many bytes, or fewer at the end of the stream.</summary>
    private static async Task<byte[]> ReadAsync(TransportBase transport, int count)
    {
        byte[] bytes = new byte[count];
        int read = 0;
        while (read < count)
        {
            TransportAsyncCallbackArgs args = new();
            args.SetBuffer(bytes, read, count - read);
            int more = await RunAsync(args, transport.ReadAsync);
            if (more == 0)
            {
                break;
            }

            read += more;
        }

        return bytes[..read];
    }

    private static async Task<int> RunAsync(TransportAsyncCallbackArgs args, Func<TransportAsyncCallbackArgs, bool> start)
    {
        TaskCompletionSource done = new(TaskCreationOptions.RunContinuationsAsynchronously);
        args.CompletedCallback = _ => done.TrySetResult();
        if (start(args))
        {
            await done.Task;
        }

        return args.Exception is null ? args.BytesTransfered : throw args.Exception;
    }
}

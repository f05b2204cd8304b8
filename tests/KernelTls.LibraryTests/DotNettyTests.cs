using System.Net;
using DotNetty.Buffers;
using DotNetty.Handlers.Tls;
using DotNetty.Transport.Bootstrapping;
using DotNetty.Transport.Channels;
using DotNetty.Transport.Channels.Sockets;
using KernelTls.Tests;

namespace KernelTls.LibraryTests;

/// <summary>
/// Tests DotNetty, which receives from the socket itself and passes the bytes to SslStream by a stream of its own. Its connections stay with
/// SslStream, and the events name the stream.
/// </summary>
[Trait("host", "yes")]
public sealed class DotNettyTests
{
    private const int Size = 300_001;

    [Fact]
    public async Task A_library_that_receives_from_the_socket_itself_works_as_before_and_its_stream_is_named()
    {
        HandshakeCounter handshakes = HandshakeCounter.Instance;
        int before = handshakes.Fallbacks.Length;
        int ownBefore = handshakes.Libraries.Length;
        byte[] sent = Pattern.Take(Size);
        TaskCompletionSource<byte[]> received = new(TaskCreationOptions.RunContinuationsAsynchronously);
        MultithreadEventLoopGroup loops = new(2);
        try
        {
            IChannel listener = await new ServerBootstrap()
                .Group(loops)
                .Channel<TcpServerSocketChannel>()
                .ChildHandler(new ActionChannelInitializer<IChannel>(channel => channel.Pipeline.AddLast(TlsHandler.Server(Certificates.Ecdsa), new Echo())))
                .BindAsync(new IPEndPoint(IPAddress.Loopback, 0)).InTime("the server's start");
            IChannel client = await new Bootstrap()
                .Group(loops)
                .Channel<TcpSocketChannel>()
                .Handler(new ActionChannelInitializer<IChannel>(channel => channel.Pipeline.AddLast(TlsHandler.Client("localhost"), new Collector(received))))
                .ConnectAsync(listener.LocalAddress).InTime("a connection");

            await client.WriteAndFlushAsync(Unpooled.WrappedBuffer(sent)).InTime("sending");
            Assert.Equal(sent, await received.Task.InTime("the echo"));
            await client.CloseAsync().InTime("the client's end");
            await listener.CloseAsync().InTime("the server's end");
        }
        finally
        {
            await loops.ShutdownGracefullyAsync(TimeSpan.Zero, Limits.Wait).InTime("the end of the threads");
        }

        const string Reason = "NotSocketStream The inner stream is a DotNetty.Handlers.Tls.TlsHandler+MediationStreamNet. DotNetty.Handlers";
        string[] expected = Run.Mode == TlsMode.Stock ? [] : [$"Fallback False {Reason}", $"Fallback True {Reason}"];
        Assert.Equal(expected, handshakes.Fallbacks[before..].Order());
        Assert.Equal(ownBefore, handshakes.Libraries.Length);
    }

    private sealed class Echo : ChannelHandlerAdapter
    {
        public override void ChannelRead(IChannelHandlerContext context, object message) => context.WriteAndFlushAsync(message);
    }

    private sealed class Collector(TaskCompletionSource<byte[]> received) : ChannelHandlerAdapter
    {
        private readonly List<byte> _bytes = [];

        public override void ChannelRead(IChannelHandlerContext context, object message)
        {
            IByteBuffer buffer = (IByteBuffer)message;
            byte[] part = new byte[buffer.ReadableBytes];
            buffer.ReadBytes(part);
            buffer.Release();
            _bytes.AddRange(part);
            if (_bytes.Count >= Size)
            {
                received.TrySetResult([.. _bytes]);
            }
        }

        public override void ExceptionCaught(IChannelHandlerContext context, Exception exception) => received.TrySetException(exception);
    }
}

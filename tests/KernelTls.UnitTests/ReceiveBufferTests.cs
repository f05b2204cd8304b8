using System.Net.Sockets;
using KernelTls.IO;
using KernelTls.Tests;

namespace KernelTls.UnitTests;

/// <summary>Tests how much a read receives at once, with a socket that has what the test says.</summary>
public sealed class ReceiveBufferTests : IDisposable
{
    private const int Small = 16 * 1024;
    private const int Large = 64 * 1024;
    private readonly Script _socket = new();
    private ReceiveBuffer _buffer;

    public void Dispose() => _socket.Socket.Dispose();

    [Theory]
    [InlineData(100, Small)]
    [InlineData(2047, Small)]
    [InlineData(2048, 2048)]
    [InlineData(50_000, 50_000)]
    public void A_small_read_asks_for_a_record_and_a_larger_one_for_its_size(int read, int expected) =>
        Assert.Equal(expected, Receive(read, 10));

    [Theory]
    [InlineData(4096, Small)]
    [InlineData(32 * 1024, 32 * 1024)]
    public void A_read_behind_a_filled_one_asks_for_more(int read, int expected)
    {
        Assert.Equal(4096, Receive(4096, 4096));

        Assert.Equal(expected, Receive(read, 10));
    }

    [Fact]
    public void Filled_buffers_grow_and_shrink_again()
    {
        Assert.Equal(Small, Receive(10, Small));
        Assert.True(_buffer.IsStreaming);
        Assert.Equal(Large, Receive(4096, Large));
        for (int i = 0; i < 8; i++)
        {
            Assert.Equal(Large, Receive(10, 5000));
            Assert.False(_buffer.IsStreaming);
        }

        Assert.Equal(Small, Receive(10, 5000));
    }

    [Fact]
    public void A_fill_that_a_small_buffer_could_not_have_held_keeps_it_large()
    {
        Receive(10, Small);
        for (int i = 0; i < 20; i++)
        {
            Assert.Equal(Large, Receive(10, Small + 1));
        }
    }

    [Fact]
    public void A_socket_that_has_nothing_ends_the_stream_of_data()
    {
        Receive(4096, 4096);
        Receive(4096, null);

        Assert.Equal(4096, Receive(4096, 10));
        Assert.True(_buffer.IsEmpty);
    }

    /// <summary>Data before a late certificate is added behind the rest, up to the size of a record.</summary>
    [Fact]
    public void A_large_rest_leaves_no_room()
    {
        Receive(10, Small);
        _socket.Next = Large;
        _buffer.Receive(_socket, new byte[10], out _);

        Assert.True(_buffer.GetRoom().IsEmpty);
    }

    /// <summary>Receives once, and takes what was received. Returns the number of bytes that the socket was asked for.</summary>
    private int Receive(int read, int? arrived)
    {
        _socket.Next = arrived;
        SocketReceiveResult? result = _buffer.Receive(_socket, new byte[read], out bool isDirect);
        Assert.Equal(arrived, result?.Bytes);
        if (!isDirect && arrived is not null)
        {
            Assert.Equal(arrived, _buffer.Read(new byte[Large]));
        }

        Assert.True(_buffer.IsEmpty);
        return _socket.Asked;
    }

    private sealed class Script() : SocketReceiver(new Socket(AddressFamily.InterNetwork, SocketType.Stream, ProtocolType.Tcp))
    {
        public int? Next { get; set; }

        public int Asked { get; private set; }

        public override SocketReceiveResult? TryReceive(Span<byte> buffer)
        {
            Asked = buffer.Length;
            return Next is { } bytes ? new SocketReceiveResult(bytes, SocketError.Success) : null;
        }
    }
}

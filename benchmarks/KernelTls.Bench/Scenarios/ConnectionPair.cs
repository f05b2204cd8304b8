using System.Net.Sockets;
using KernelTls.Bench.Modes;

namespace KernelTls.Bench.Scenarios;

/// <summary>Both ends of one connection.</summary>
internal sealed record ConnectionPair(Stream Client, Stream Server, Socket ClientSocket, Socket ServerSocket)
{
    // linux/tcp.h: struct tcp_info, tcpi_bytes_received.
    private const int SolTcp = 6;
    private const int TcpInfo = 11;
    private const int BytesReceivedOffset = 128;

    public static async Task<ConnectionPair> OpenAsync(Socket listener, Mode mode)
    {
        Socket client = new(AddressFamily.InterNetwork, SocketType.Stream, ProtocolType.Tcp) { NoDelay = true };
        Task<Socket> accepting = listener.AcceptAsync();
        await client.ConnectAsync(listener.LocalEndPoint!);
        Socket server = await accepting;
        server.NoDelay = true;

        Task<Stream> acceptedEnd = mode.AcceptAsync(server);
        Stream clientEnd = await mode.ConnectAsync(client);
        return new ConnectionPair(clientEnd, await acceptedEnd, client, server);
    }

    /// <summary>Ends both directions as the protocol has it, and closes.</summary>
    public async Task CloseAsync(Mode mode, byte[] buffer)
    {
        await mode.EndSendingAsync(Client);
        await ExpectEndAsync(Server, buffer);
        await mode.EndSendingAsync(Server);
        await ExpectEndAsync(Client, buffer);
        await Client.DisposeAsync();
        await Server.DisposeAsync();
    }

    /// <summary>What the server has sent so far, handshake and records included: the kernel's count.</summary>
    public long BytesOnTheWire()
    {
        Span<byte> info = stackalloc byte[BytesReceivedOffset + sizeof(long)];
        int length = ClientSocket.GetRawSocketOption(SolTcp, TcpInfo, info);
        return length >= info.Length
            ? BitConverter.ToInt64(info[BytesReceivedOffset..])
            : throw new BenchFailedException("this kernel's TCP_INFO has no count of received bytes");
    }

    private static async Task ExpectEndAsync(Stream stream, byte[] buffer)
    {
        int received = await stream.ReadAsync(buffer);
        if (received != 0)
        {
            throw new BenchFailedException($"{received} bytes where the stream was to end");
        }
    }
}

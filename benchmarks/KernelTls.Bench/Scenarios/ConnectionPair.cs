using System.Net.Sockets;
using KernelTls.Bench.Modes;

namespace KernelTls.Bench.Scenarios;

/// <summary>Represents both ends of one connection.</summary>
internal sealed record ConnectionPair(Stream Client, Stream Server, Socket ClientSocket, Socket ServerSocket)
{
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

    /// <summary>Ends both directions as the protocol requires and closes the connection.</summary>
    public async Task CloseAsync(Mode mode, byte[] buffer)
    {
        await mode.EndSendingAsync(Client);
        await ExpectEndAsync(Server, buffer);
        await mode.EndSendingAsync(Server);
        await ExpectEndAsync(Client, buffer);
        await Client.DisposeAsync();
        await Server.DisposeAsync();
    }

    /// <summary>
    /// Returns the kernel's count of bytes that the server has sent, including the handshake and record overhead.
    /// </summary>
    public long BytesOnTheWire() => TcpInfo.BytesReceived(ClientSocket);

    private static async Task ExpectEndAsync(Stream stream, byte[] buffer)
    {
        int received = await stream.ReadAsync(buffer);
        if (received != 0)
        {
            throw new BenchFailedException($"{received} bytes where the stream was to end");
        }
    }
}

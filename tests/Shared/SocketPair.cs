using System.Net;
using System.Net.Sockets;

namespace KernelTls.Tests;

/// <summary>Two connected TCP sockets over loopback.</summary>
internal sealed class SocketPair : IDisposable
{
    public SocketPair(Socket client, Socket server)
    {
        Client = client;
        Server = server;
    }

    public Socket Client { get; }

    public Socket Server { get; }

    /// <param name="prepare">What is to be done to the client's socket before it connects.</param>
    public static async Task<SocketPair> ConnectAsync(Action<Socket>? prepare = null)
    {
        using Socket listener = new(AddressFamily.InterNetwork, SocketType.Stream, ProtocolType.Tcp);
        listener.Bind(new IPEndPoint(IPAddress.Loopback, 0));
        listener.Listen(1);
        Socket client = new(AddressFamily.InterNetwork, SocketType.Stream, ProtocolType.Tcp) { NoDelay = true };
        prepare?.Invoke(client);
        Task<Socket> accepting = listener.AcceptAsync();
        await client.ConnectAsync(listener.LocalEndPoint!).InTime("a TCP connection over loopback");
        Socket server = await accepting.InTime("accepting the connection");
        server.NoDelay = true;
        return new SocketPair(client, server);
    }

    public void Dispose()
    {
        Client.Dispose();
        Server.Dispose();
    }
}

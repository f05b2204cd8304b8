using System.Collections.Concurrent;
using System.Net;
using System.Net.Sockets;

namespace KernelTls.Tests;

/// <summary>Creates two connected TCP sockets over loopback.</summary>
internal sealed class SocketPair : IDisposable
{
    /// <summary>
    /// Reused listeners, each for one connection at a time. Ten thousand connections with a separate port each would
    /// exhaust the ports.
    /// </summary>
    private static readonly ConcurrentBag<Socket> s_listeners = [];

    public SocketPair(Socket client, Socket server)
    {
        Client = client;
        Server = server;
    }

    public Socket Client { get; }

    public Socket Server { get; }

    /// <summary>Connects a pair.</summary>
    /// <param name="prepare">The action to run on the client's socket before it connects.</param>
    public static async Task<SocketPair> ConnectAsync(Action<Socket>? prepare = null)
    {
        Socket listener = s_listeners.TryTake(out Socket? kept) ? kept : Listen();
        Socket client = new(AddressFamily.InterNetwork, SocketType.Stream, ProtocolType.Tcp) { NoDelay = true };
        try
        {
            prepare?.Invoke(client);
            Task<Socket> accepting = listener.AcceptAsync();
            await client.ConnectAsync(listener.LocalEndPoint!).InTime("a TCP connection over loopback");
            Socket server = await accepting.InTime("accepting the connection");
            server.NoDelay = true;
            s_listeners.Add(listener);
            return new SocketPair(client, server);
        }
        catch
        {
            // The listener may still accept this client, which must not become part of another pair.
            listener.Dispose();
            client.Dispose();
            throw;
        }
    }

    public void Dispose()
    {
        Client.Dispose();
        Server.Dispose();
    }

    private static Socket Listen()
    {
        Socket listener = new(AddressFamily.InterNetwork, SocketType.Stream, ProtocolType.Tcp);
        listener.Bind(new IPEndPoint(IPAddress.Loopback, 0));
        listener.Listen(1);
        return listener;
    }
}

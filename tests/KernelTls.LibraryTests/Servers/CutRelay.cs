using System.Net;
using System.Net.Sockets;
using KernelTls.Tests;

namespace KernelTls.LibraryTests.Servers;

/// <summary>Relays the connections of a port to a server, and can reset them.</summary>
internal sealed class CutRelay : IAsyncDisposable
{
    private readonly TcpListener _listener = new(IPAddress.Loopback, 0);
    private readonly List<Socket> _sockets = [];
    private readonly Task _accepting;

    public CutRelay(int server)
    {
        _listener.Start();
        _accepting = AcceptAsync(server);
    }

    public int Port => ((IPEndPoint)_listener.LocalEndpoint).Port;

    /// <summary>Resets the current connections.</summary>
    public void Cut()
    {
        lock (_sockets)
        {
            foreach (Socket socket in _sockets)
            {
                socket.Dispose();
            }

            _sockets.Clear();
        }
    }

    public async ValueTask DisposeAsync()
    {
        _listener.Stop();
        await _accepting.InTime("the relay's end");
        Cut();
    }

    private async Task AcceptAsync(int server)
    {
        try
        {
            while (true)
            {
                Socket client = await _listener.AcceptSocketAsync();
                Socket upstream = new(SocketType.Stream, ProtocolType.Tcp);
                await upstream.ConnectAsync(IPAddress.Loopback, server);
                foreach (Socket socket in new[] { client, upstream })
                {
                    // Closing sends a reset.
                    socket.LingerState = new LingerOption(enable: true, seconds: 0);
                    lock (_sockets)
                    {
                        _sockets.Add(socket);
                    }
                }

                _ = Relay.PassAsync(client, upstream, _ => { });
                _ = Relay.PassAsync(upstream, client, _ => { });
            }
        }
        catch (Exception e) when (e is SocketException or ObjectDisposedException)
        {
        }
    }
}

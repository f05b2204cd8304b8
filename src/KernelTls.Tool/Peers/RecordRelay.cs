using System.Net;
using System.Net.Sockets;

namespace KernelTls.Tool.Peers;

/// <summary>
/// Carries one connection between a socket of this process and the peer, and looks at its records as they pass: kernel TLS
/// wants a real socket, and what is on the wire can be seen from outside only.
/// </summary>
internal sealed class RecordRelay : IAsyncDisposable
{
    private readonly Socket _near;
    private readonly Socket _far;
    private readonly CancellationTokenSource _end = new();
    private readonly Task _pumps;

    private RecordRelay(Socket client, Socket near, Socket far)
    {
        (Client, _near, _far) = (client, near, far);
        _pumps = Task.WhenAll(PumpAsync(near, far, new RecordScanner()), PumpAsync(far, near, Inbound));
    }

    /// <summary>The end for TLS. The caller's to dispose.</summary>
    public Socket Client { get; }

    /// <summary>What the peer has sent.</summary>
    public RecordScanner Inbound { get; } = new();

    /// <param name="peer">A connection to the peer; the relay's from here.</param>
    /// <param name="cancellationToken">Ends the wait.</param>
    public static async Task<RecordRelay> StartAsync(Socket peer, CancellationToken cancellationToken)
    {
        using Socket listener = new(AddressFamily.InterNetwork, SocketType.Stream, ProtocolType.Tcp);
        listener.Bind(new IPEndPoint(IPAddress.Loopback, 0));
        listener.Listen(1);
        Socket client = new(AddressFamily.InterNetwork, SocketType.Stream, ProtocolType.Tcp) { NoDelay = true };
        await client.ConnectAsync(listener.LocalEndPoint!, cancellationToken);
        Socket near = await listener.AcceptAsync(cancellationToken);
        while (!client.LocalEndPoint!.Equals(near.RemoteEndPoint))
        {
            near.Dispose(); // somebody else on this machine
            near = await listener.AcceptAsync(cancellationToken);
        }

        near.NoDelay = true;
        return new RecordRelay(client, near, peer);
    }

    public async ValueTask DisposeAsync()
    {
        await _end.CancelAsync();
        await _pumps;
        _near.Dispose();
        _far.Dispose();
        _end.Dispose();
    }

    /// <summary>Ends with the connection, however that ends: the two ends see it for themselves.</summary>
    private async Task PumpAsync(Socket from, Socket to, RecordScanner scanner)
    {
        byte[] buffer = new byte[64 * 1024];
        try
        {
            for (int count; (count = await from.ReceiveAsync(buffer, _end.Token)) > 0;)
            {
                scanner.Push(buffer.AsSpan(0, count));
                for (int sent = 0; sent < count;)
                {
                    sent += await to.SendAsync(buffer.AsMemory(sent, count - sent), _end.Token);
                }
            }

            to.Shutdown(SocketShutdown.Send);
        }
        catch (Exception e) when (e is SocketException or OperationCanceledException or ObjectDisposedException)
        {
            // Where the other direction has failed first, it has closed what this one reads from.
            to.Close(timeout: 0);
        }
    }
}

using System.Net;
using System.Net.Sockets;

namespace KernelTls.Tool.Peers;

/// <summary>
/// Relays one connection between a socket of this process and the peer, and observes its records. Kernel TLS needs a
/// real socket, whose records can only be observed outside.
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

    /// <summary>Gets the socket for TLS. The caller must dispose it.</summary>
    public Socket Client { get; }

    /// <summary>Gets the scanner of the peer's data.</summary>
    public RecordScanner Inbound { get; } = new();

    /// <summary>Starts a relay.</summary>
    /// <param name="peer">The connection to the peer, which the relay owns from here on.</param>
    /// <param name="cancellationToken">The token to monitor for cancellation requests.</param>
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
            near.Dispose(); // another process on this machine
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

    /// <summary>Copies until the connection ends in any way. Both ends detect that themselves.</summary>
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
            // If the other direction failed first, it has closed the socket that this one reads from.
            to.Close(timeout: 0);
        }
    }
}

using System.Net.Sockets;
using KernelTls.Tests;

namespace KernelTls.ConformanceTests;

/// <summary>
/// Connects through a relay that sends the client's first bytes one by one, each in a separate segment.
/// </summary>
internal sealed class SlowRelay : IDisposable
{
    private readonly SocketPair _near;
    private readonly SocketPair _far;

    private SlowRelay(SocketPair near, SocketPair far)
    {
        (_near, _far) = (near, far);
        Ends = new SocketPair(near.Client, far.Server);
    }

    /// <summary>Gets the sockets of the client and the server.</summary>
    public SocketPair Ends { get; }

    /// <summary>Gets the number of bytes passed one by one from the client to the server.</summary>
    public int Single { get; private set; }

    public static async Task<SlowRelay> ConnectAsync(int single)
    {
        SlowRelay relay = new(await SocketPair.ConnectAsync(), await SocketPair.ConnectAsync());
        _ = relay.PassAsync(relay._near.Server, relay._far.Client, single);
        _ = relay.PassAsync(relay._far.Client, relay._near.Server, 0);
        return relay;
    }

    public void Dispose()
    {
        _near.Dispose();
        _far.Dispose();
    }

    /// <summary>Relays until either socket ends.</summary>
    private async Task PassAsync(Socket from, Socket to, int single)
    {
        byte[] buffer = new byte[16 * 1024];
        try
        {
            for (int read; (read = await from.ReceiveAsync(buffer)) > 0;)
            {
                int sent = 0;
                for (; sent < read && single > 0; sent++, single--, Single++)
                {
                    await to.SendAsync(buffer.AsMemory(sent, 1));
                }

                if (sent < read)
                {
                    await to.SendAsync(buffer.AsMemory(sent, read - sent));
                }
            }

            to.Shutdown(SocketShutdown.Send);
        }
        catch (Exception e) when (e is SocketException or ObjectDisposedException)
        {
            to.Dispose();
        }
    }
}

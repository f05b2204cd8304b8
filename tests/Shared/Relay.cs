using System.Net.Sockets;

namespace KernelTls.Tests;

/// <summary>Relays one direction of a connection, so that it can be observed and changed.</summary>
internal static class Relay
{
    /// <summary>Relays until either socket ends. The end is relayed as well.</summary>
    /// <param name="from">The socket to read from.</param>
    /// <param name="to">The socket to write to.</param>
    /// <param name="look">The callback that observes the bytes and may change them.</param>
    public static async Task PassAsync(Socket from, Socket to, Action<Span<byte>> look)
    {
        byte[] buffer = new byte[64 * 1024];
        try
        {
            for (int read; (read = await from.ReceiveAsync(buffer)) > 0;)
            {
                look(buffer.AsSpan(0, read));
                for (int sent = 0; sent < read;)
                {
                    sent += await to.SendAsync(buffer.AsMemory(sent, read - sent));
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

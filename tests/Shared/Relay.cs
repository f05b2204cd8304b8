using System.Net.Sockets;

namespace KernelTls.Tests;

/// <summary>Passes one direction of a connection on, where it can be seen and changed.</summary>
internal static class Relay
{
    /// <summary>Until either socket ends; the end is passed on as well.</summary>
    /// <param name="from">Where bytes come from.</param>
    /// <param name="to">Where they go to.</param>
    /// <param name="look">Sees them in between, and may change them.</param>
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

using System.Buffers;
using System.Diagnostics;
using System.Net.Sockets;

namespace KernelTls.IO;

/// <summary>
/// Lets the peer read the alert that ended a handshake before the socket is closed. What the peer has sent meanwhile, at least the
/// rest of its flight, is unread; closing the socket with it would reset the connection, and the alert would be lost. So this end
/// sends its FIN and throws away what comes, until the peer closes as well: for at most a second, and for at most 256 KiB.
/// </summary>
internal static class AlertDelivery
{
    private const int MostBytes = 256 * 1024;
    private const int BufferSize = 8 * 1024;

    private static readonly TimeSpan s_limit = TimeSpan.FromSeconds(1);

    public static async Task CompleteAsync(Socket socket)
    {
        byte[] buffer = ArrayPool<byte>.Shared.Rent(BufferSize);
        try
        {
            using CancellationTokenSource limit = new(s_limit);
            socket.Shutdown(SocketShutdown.Send);
            int received;
            for (int total = 0; total < MostBytes; total += received)
            {
                received = await socket.ReceiveAsync(buffer, limit.Token).ConfigureAwait(false);
                if (received == 0)
                {
                    return;
                }
            }
        }
        catch (Exception e) when (e is SocketException or ObjectDisposedException or OperationCanceledException)
        {
            // The peer has reset the connection, somebody has closed the socket, or the time is over: no more can be done.
        }
        finally
        {
            ArrayPool<byte>.Shared.Return(buffer);
        }
    }

    /// <summary>As <see cref="CompleteAsync"/>, blocking.</summary>
    public static void Complete(Socket socket)
    {
        byte[] buffer = ArrayPool<byte>.Shared.Rent(BufferSize);
        try
        {
            long started = Stopwatch.GetTimestamp();
            socket.Shutdown(SocketShutdown.Send);
            int received;
            for (int total = 0; total < MostBytes; total += received)
            {
                TimeSpan left = s_limit - Stopwatch.GetElapsedTime(started);
                if (left <= TimeSpan.Zero || !socket.Poll(left, SelectMode.SelectRead))
                {
                    return;
                }

                received = socket.Receive(buffer);
                if (received == 0)
                {
                    return;
                }
            }
        }
        catch (Exception e) when (e is SocketException or ObjectDisposedException)
        {
            // As above.
        }
        finally
        {
            ArrayPool<byte>.Shared.Return(buffer);
        }
    }
}

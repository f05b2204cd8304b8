using System.Buffers;
using System.Diagnostics;
using System.Net.Sockets;

namespace KernelTls.IO;

/// <summary>Lets the peer read what this end has sent before the socket is closed.</summary>
/// <remarks>
/// Closing a socket with unread data, or data that arrives after that, resets the connection (RFC 1122, section
/// 4.2.2.13). The peer may then lose what it has not read yet: the alert that ended a handshake, or the last responses of
/// HTTP/2. This end therefore sends its FIN and discards incoming data until the peer closes as well, for at most one
/// second and at most 256 KiB.
/// </remarks>
internal static class LingeringClose
{
    private const int MaxBytes = 256 * 1024;
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
            for (int total = 0; total < MaxBytes; total += received)
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
            // The peer reset the connection, the socket was closed, or the time is over. Nothing more can be done.
        }
        finally
        {
            ArrayPool<byte>.Shared.Return(buffer);
        }
    }

    /// <summary>Does the same as <see cref="CompleteAsync"/>, blocking.</summary>
    public static void Complete(Socket socket)
    {
        byte[] buffer = ArrayPool<byte>.Shared.Rent(BufferSize);
        try
        {
            long started = Stopwatch.GetTimestamp();
            socket.Shutdown(SocketShutdown.Send);
            int received;
            for (int total = 0; total < MaxBytes; total += received)
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
            // See CompleteAsync.
        }
        finally
        {
            ArrayPool<byte>.Shared.Return(buffer);
        }
    }
}

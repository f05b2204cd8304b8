using System.Net.Sockets;

namespace KernelTls.IO;

/// <summary>A socket's receives and waits, with their outcome as a value where the socket would throw.</summary>
internal sealed class SocketReceiver(Socket socket)
{
    public Socket Socket { get; } = socket;

    /// <summary>
    /// Receives into <paramref name="buffer"/>; an empty buffer waits for readability and consumes nothing. Where the socket
    /// has to wait first, an error costs an exception inside.
    /// </summary>
    public async ValueTask<SocketOutcome> ReceiveAsync(Memory<byte> buffer, CancellationToken cancellationToken)
    {
        try
        {
            int bytes = await Socket.ReceiveAsync(buffer, SocketFlags.None, cancellationToken).ConfigureAwait(false);
            return new SocketOutcome(bytes, SocketError.Success);
        }
        catch (SocketException e)
        {
            return new SocketOutcome(0, e.SocketErrorCode);
        }
    }

    /// <summary>Receives, blocking for at most the socket's ReceiveTimeout (<see cref="SocketError.TimedOut"/>).</summary>
    public SocketOutcome Receive(Span<byte> buffer)
    {
        int bytes = Socket.Receive(buffer, SocketFlags.None, out SocketError error);
        return new SocketOutcome(bytes, error);
    }

    /// <summary>Blocks until the socket is readable, for at most its ReceiveTimeout (<see cref="SocketError.TimedOut"/>).</summary>
    public SocketOutcome WaitReadable() =>
        new(0, Socket.Poll(SocketTimeouts.ToTimeSpan(Socket.ReceiveTimeout), SelectMode.SelectRead) ? SocketError.Success : SocketError.TimedOut);
}

using System.Net.Sockets;
using KernelTls.Interop;

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
            return OutcomeOf(0, e.SocketErrorCode);
        }
    }

    /// <summary>Receives, blocking for at most the socket's ReceiveTimeout (<see cref="SocketError.TimedOut"/>).</summary>
    public SocketOutcome Receive(Span<byte> buffer)
    {
        int bytes = Socket.Receive(buffer, SocketFlags.None, out SocketError error);
        return OutcomeOf(bytes, error);
    }

    /// <summary>
    /// What a receive of data would meet now, consuming nothing; <see langword="null"/>: it would wait. For an empty read this
    /// is the only way to know: .NET completes an empty receive at any event, also at one about bytes that were read before.
    /// </summary>
    public SocketOutcome? Look()
    {
        if (!Socket.Poll(0, SelectMode.SelectRead))
        {
            return null;
        }

        Span<byte> one = stackalloc byte[1];
        int bytes = Socket.Receive(one, SocketFlags.Peek, out SocketError error);
        return error == SocketError.WouldBlock ? null : OutcomeOf(bytes, error);
    }

    /// <summary>
    /// What one receive on this socket came to. .NET takes any error for the end of the connection; after one that only asks
    /// for OpenSSL, the socket goes on being connected for those who look (its own SendFile does).
    /// </summary>
    public SocketOutcome OutcomeOf(int bytes, SocketError error)
    {
        SocketOutcome outcome = new(bytes, error);
        if (outcome.IsForOpenSsl)
        {
            RuntimeInternals.SetToConnected(Socket);
        }

        return outcome;
    }

    /// <summary>Blocks until the socket is readable, for at most its ReceiveTimeout (<see cref="SocketError.TimedOut"/>).</summary>
    public SocketOutcome WaitReadable() =>
        new(0, Socket.Poll(SocketTimeouts.ToTimeSpan(Socket.ReceiveTimeout), SelectMode.SelectRead) ? SocketError.Success : SocketError.TimedOut);
}

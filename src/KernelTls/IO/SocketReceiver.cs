using System.Net.Sockets;
using KernelTls.Interop;

namespace KernelTls.IO;

/// <summary>A socket's receives and waits, with their outcome as a value where the socket would throw.</summary>
internal sealed class SocketReceiver(Socket socket)
{
    private readonly SafeSocketHandle _handle = socket.SafeHandle;

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

    /// <summary>Receives what is there, without waiting; <see langword="null"/>: nothing is.</summary>
    public unsafe SocketOutcome? TryReceive(Span<byte> buffer)
    {
        int received;
        int errno;
        fixed (byte* bytes = buffer)
        {
            errno = KtlsNative.KtlsNative_SocketReceive(_handle, bytes, buffer.Length, &received);
        }

        return errno switch
        {
            0 => new SocketOutcome(received, SocketError.Success),
            Errno.Again => null,
            Errno.MessageSize => new SocketOutcome(0, SocketError.MessageSize),
            Errno.Invalid => new SocketOutcome(0, SocketError.InvalidArgument),
            _ => new SocketOutcome(0, TlsErrors.ToSocketError(errno)),
        };
    }

    /// <summary>Starts a receive of <paramref name="arguments"/>. False: it has ended already, and no completion follows.</summary>
    public bool Start(SocketAsyncEventArgs arguments, CancellationToken cancellationToken) =>
        RuntimeInternals.ReceiveAsync(Socket, arguments, cancellationToken);

    /// <summary>
    /// What one receive on this socket came to. .NET takes any error for the end of the connection; after one that only asks
    /// for OpenSSL, the socket goes on being connected for those who look (its own SendFile does).
    /// </summary>
    public SocketOutcome OutcomeOf(int bytes, SocketError error)
    {
        SocketOutcome outcome = new(bytes, error);
        if (outcome.RecordErrno != 0)
        {
            RuntimeInternals.SetToConnected(Socket);
        }

        return outcome;
    }

    /// <summary>
    /// Blocks until the socket is readable, for at most its ReceiveTimeout. Returns <see langword="false"/> when the time is over,
    /// or at once for an error that the socket has: the caller looks once more before it speaks of a timeout.
    /// </summary>
    public bool WaitReadable() => Socket.Poll(SocketTimeouts.ToTimeSpan(Socket.ReceiveTimeout), SelectMode.SelectRead);
}

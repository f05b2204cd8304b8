using System.Net.Sockets;
using KernelTls.Interop;

namespace KernelTls.IO;

/// <summary>Receives from a socket and waits for it, with errors as values instead of exceptions.</summary>
/// <remarks>
/// Its operations are virtual for tests/KernelTls.Fuzz, whose model makes them return any result in any order.
/// </remarks>
internal class SocketReceiver(Socket socket)
{
    private readonly SafeSocketHandle _handle = socket.SafeHandle;

    public Socket Socket { get; } = socket;

    /// <summary>
    /// Waits until the socket is readable, and consumes nothing. On <see cref="SocketException"/>, the caller passes
    /// the error to <see cref="Complete"/>.
    /// </summary>
    /// <remarks>
    /// An asynchronous method with a catch block and a <see cref="SocketReceiveResult"/> would need 34 methods of
    /// generic code that cannot be compiled ahead of time.
    /// </remarks>
    public ValueTask<int> WaitReadableAsync(CancellationToken cancellationToken) =>
        Socket.ReceiveAsync(Memory<byte>.Empty, SocketFlags.None, cancellationToken);

    /// <summary>Receives without waiting. Returns <see langword="null"/> if nothing has arrived.</summary>
    public virtual unsafe SocketReceiveResult? TryReceive(Span<byte> buffer)
    {
        int received;
        int errno;
        fixed (byte* bytes = buffer)
        {
            errno = KtlsNative.KtlsNative_SocketReceive(_handle, bytes, buffer.Length, &received);
        }

        return errno switch
        {
            0 => new SocketReceiveResult(received, SocketError.Success),
            Errno.Again => null,
            _ => new SocketReceiveResult(0, SocketReceiveResult.ErrorOf(errno)),
        };
    }

    /// <summary>
    /// Starts a receive with <paramref name="arguments"/>. Returns false if it has completed already, in which case no
    /// completion follows.
    /// </summary>
    public virtual bool Start(SocketAsyncEventArgs arguments, CancellationToken cancellationToken) =>
        RuntimeInternals.ReceiveAsync(Socket, arguments, cancellationToken);

    /// <summary>Returns the result of one receive on this socket.</summary>
    /// <remarks>
    /// .NET treats every error as the end of the connection. After an error that only means that OpenSSL must read,
    /// this method marks the socket as connected again, because other code checks that (the socket's own SendFile
    /// does).
    /// </remarks>
    public virtual SocketReceiveResult Complete(int bytes, SocketError error)
    {
        SocketReceiveResult result = new(bytes, error);
        if (result.RecordErrno != 0)
        {
            RuntimeInternals.SetToConnected(Socket);
        }

        return result;
    }

    /// <summary>Takes the error that the kernel has stored on the socket, so that no later call reports it.</summary>
    public virtual void ClearError() => Socket.GetSocketOption(SocketOptionLevel.Socket, SocketOptionName.Error);

    /// <summary>Blocks until the socket is readable, at most for its ReceiveTimeout.</summary>
    /// <returns>
    /// False when the time is over, or immediately if the socket has an error: the caller must receive once more before
    /// it reports a timeout.
    /// </returns>
    public virtual bool WaitReadable() =>
        Socket.Poll(SocketTimeouts.ToTimeSpan(Socket.ReceiveTimeout), SelectMode.SelectRead);
}

/// <summary>Represents the result of a socket receive, with errors as values.</summary>
internal readonly record struct SocketReceiveResult(int Bytes, SocketError Error)
{
    /// <summary>Gets the errno to pass to OpenSSL before it reads, or 0 if the error is not about a record.</summary>
    /// <remarks>
    /// The kernel reports EMSGSIZE, EINVAL or EBADMSG for a record that it refuses, and EIO if the next record is not
    /// data. .NET has no SocketError for EIO, EBADMSG and EKEYEXPIRED and reports all three as
    /// <see cref="SocketError.SocketError"/>. EIO stands for these here.
    /// </remarks>
    public int RecordErrno => Error switch
    {
        SocketError.SocketError => Errno.InputOutput,
        SocketError.MessageSize => Errno.MessageSize,
        SocketError.InvalidArgument => Errno.Invalid,
        _ => 0,
    };

    /// <summary>
    /// Returns the error of a call that failed with <paramref name="errno"/>. A send reports the same errors of records
    /// as a receive does.
    /// </summary>
    public static SocketError ErrorOf(int errno) => errno switch
    {
        Errno.MessageSize => SocketError.MessageSize,
        Errno.Invalid => SocketError.InvalidArgument,
        _ => TlsErrors.ToSocketError(errno),
    };
}

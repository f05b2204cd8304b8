using System.Net.Sockets;
using KernelTls.Interop;

namespace KernelTls.IO;

/// <summary>
/// Waits for readiness events that Socket does not expose: space in the send buffer, and more bytes than have arrived
/// already. Thread-safe.
/// </summary>
/// <remarks>
/// <para>
/// OpenSSL's own writes (handshake flights, KeyUpdate, alerts, OpenSSL on the socket) and sendfile wait for space when
/// the send buffer is full. Code that peeks at bytes without consuming them waits for more bytes.
/// </para>
/// <para>
/// A wait registers the socket's own descriptor, so it needs no additional one. While registered, it holds a reference
/// to the socket's handle, so that the descriptor cannot be closed and its number cannot be reused by another socket.
/// </para>
/// <para>
/// Disposing the socket ends its waits at once. Socket.Dispose shuts down a socket whose handle is still referenced,
/// which is reported as readiness. The poller's thread then releases the reference, and the descriptor is closed. The
/// runtime does not shut down a socket whose descriptor lacks FD_CLOEXEC; it sets that flag on all sockets that it
/// creates.
/// </para>
/// </remarks>
internal static class SocketReadiness
{
    /// <summary>The binary logarithm of the longest pause, in milliseconds.</summary>
    private const int LongestPause = 7;

    private static readonly Lock s_lock = new();
    private static readonly Dictionary<SafeSocketHandle, SocketWait> s_waits = [];

    /// <summary>
    /// A separate poller, because each socket may also be registered in the shared one to watch for the peer's end.
    /// </summary>
    private static readonly SocketPoller s_poller = new();

    /// <summary>
    /// Creates the epoll set, so that a later wait needs no descriptor. Does nothing if the process has no descriptors
    /// left.
    /// </summary>
    public static void Prepare()
    {
        try
        {
            _ = s_poller.Descriptor;
        }
        catch (IOException)
        {
            // The first wait tries again.
        }
    }

    /// <summary>
    /// Returns a task that completes when the socket is writable, has failed or is disposed. The next write shows
    /// which.
    /// </summary>
    /// <exception cref="OperationCanceledException">The token was canceled first.</exception>
    /// <exception cref="ObjectDisposedException">The socket is already disposed.</exception>
    /// <exception cref="IOException">The wait could not be registered.</exception>
    public static Task WaitToWriteAsync(SafeSocketHandle socket, CancellationToken cancellationToken) =>
        WaitAsync(socket, NativeWait.Writable, cancellationToken);

    /// <summary>
    /// Waits for room after a send that found none. If such sends fail although the socket is writable, there is no memory
    /// (<see cref="SendWatch"/>): the wait would end at once, and from the third time in a row a pause precedes it.
    /// </summary>
    /// <param name="socket">The socket.</param>
    /// <param name="refusals">The result of the wait before this one, or 0 if there was progress since.</param>
    /// <param name="cancellationToken">The token that cancels the wait.</param>
    /// <returns>The number of such times in a row.</returns>
    public static async Task<int> WaitForRoomAsync(Socket socket, int refusals, CancellationToken cancellationToken)
    {
        refusals = CountRefusals(socket, refusals);
        if (PauseOf(refusals) is var pause && pause > TimeSpan.Zero)
        {
            await Task.Delay(pause, cancellationToken).ConfigureAwait(false);
        }

        await WaitAsync(socket.SafeHandle, NativeWait.Writable, cancellationToken).ConfigureAwait(false);
        return refusals;
    }

    /// <summary>Waits for room like <see cref="WaitForRoomAsync"/>, but blocks.</summary>
    /// <param name="socket">The socket, whose SendTimeout limits the wait.</param>
    /// <param name="refusals">The number of times in a row, to which this one is added.</param>
    /// <returns><see langword="false"/> if the time is over.</returns>
    public static bool WaitForRoom(Socket socket, ref int refusals)
    {
        refusals = CountRefusals(socket, refusals);
        Thread.Sleep(PauseOf(refusals));
        return socket.Poll(SocketTimeouts.ToTimeSpan(socket.SendTimeout), SelectMode.SelectWrite);
    }

    /// <summary>Returns whether the socket is writable now. A process that may have no descriptors cannot ask, and gets <see langword="false"/>.</summary>
    public static bool IsWritable(Socket socket)
    {
        try
        {
            return socket.Poll(TimeSpan.Zero, SelectMode.SelectWrite);
        }
        catch (SocketException)
        {
            // poll(2) refuses more sockets than RLIMIT_NOFILE.
            return false;
        }
    }

    /// <summary>
    /// Returns a task that completes when the socket holds as many bytes as its SO_RCVLOWAT (socket(7)), when the peer
    /// has closed its half, or when the socket has failed or is disposed.
    /// </summary>
    /// <inheritdoc cref="WaitToWriteAsync" path="/exception"/>
    public static Task WaitToReadAsync(SafeSocketHandle socket, CancellationToken cancellationToken) =>
        WaitAsync(socket, NativeWait.Readable, cancellationToken);

    /// <summary>Ends all waits on a socket and releases its handle, for a caller that closes the socket next.</summary>
    public static void EndWaits(SafeSocketHandle socket)
    {
        SocketWait? wait;
        lock (s_lock)
        {
            if (!s_waits.TryGetValue(socket, out wait))
            {
                return;
            }

            Remove(wait);
        }

        foreach (TaskCompletionSource waiter in wait.Waiters)
        {
            waiter.TrySetResult();
        }
    }

    private static int CountRefusals(Socket socket, int before) => IsWritable(socket) ? before + 1 : 0;

    /// <summary>Returns the pause before the next attempt. The first refusals may be due to room that came just then.</summary>
    private static TimeSpan PauseOf(int refusals) =>
        refusals < 3 ? TimeSpan.Zero : TimeSpan.FromMilliseconds(1 << Math.Min(refusals - 3, LongestPause));

    private static async Task WaitAsync(SafeSocketHandle socket, NativeWait what, CancellationToken cancellationToken)
    {
        TaskCompletionSource waiter = new(TaskCreationOptions.RunContinuationsAsynchronously);
        Add(socket, what, waiter);

        // Unregister first: the caller that cancels may dispose the socket next, so its handle must be released before.
        using (cancellationToken.UnsafeRegister(_ => Cancel(socket, waiter, cancellationToken), null))
        {
            await waiter.Task.ConfigureAwait(false);
        }
    }

    private static void Add(SafeSocketHandle socket, NativeWait what, TaskCompletionSource waiter)
    {
        int poller = s_poller.Descriptor;
        lock (s_lock)
        {
            if (!s_waits.TryGetValue(socket, out SocketWait? wait))
            {
                wait = new SocketWait(socket);
                wait.Token = s_poller.Register(failure => Complete(wait, failure));
                s_waits.Add(socket, wait);
            }

            int errno = KtlsNative.KtlsNative_PollerArm(poller, wait.Descriptor, wait.Events | what, wait.Token);
            if (errno == 0)
            {
                wait.Events |= what;
                wait.Waiters.Add(waiter);
                return;
            }

            if (wait.Waiters.Count == 0)
            {
                Remove(wait);
            }

            throw TlsErrors.Call($"waiting for the socket to be {what}", errno);
        }
    }

    /// <summary>Ends all waits on a socket. Each waiter checks for itself whether its condition holds.</summary>
    private static void Complete(SocketWait wait, Exception? failure)
    {
        lock (s_lock)
        {
            if (s_waits.GetValueOrDefault(wait.Socket) != wait)
            {
                return;
            }

            Remove(wait);
        }

        foreach (TaskCompletionSource waiter in wait.Waiters)
        {
            _ = failure is null ? waiter.TrySetResult() : waiter.TrySetException(failure);
        }
    }

    private static void Cancel(SafeSocketHandle socket, TaskCompletionSource waiter, CancellationToken cancellationToken)
    {
        lock (s_lock)
        {
            if (s_waits.TryGetValue(socket, out SocketWait? wait) && wait.Waiters.Remove(waiter) && wait.Waiters.Count == 0)
            {
                Remove(wait);
            }
        }

        waiter.TrySetCanceled(cancellationToken);
    }

    /// <summary>Removes a wait. The caller must hold the lock.</summary>
    private static void Remove(SocketWait wait)
    {
        s_waits.Remove(wait.Socket);
        s_poller.Unregister(wait.Token);
        _ = KtlsNative.KtlsNative_PollerDisarm(s_poller.Descriptor, wait.Descriptor);
        wait.Socket.DangerousRelease();
    }
}

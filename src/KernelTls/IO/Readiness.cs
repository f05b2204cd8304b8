using System.Collections.Concurrent;
using System.Net.Sockets;
using KernelTls.Interop;

namespace KernelTls.IO;

/// <summary>
/// Waits for what .NET's Socket has no operation for: room in the send buffer, and more bytes than are there already. Only
/// OpenSSL's own writes need the first (handshake flights, KeyUpdate, alerts, the DirectOpenSsl path), when the buffer is full;
/// only who looks at bytes without taking them needs the other. One epoll set and one thread serve the whole process, made when
/// the first such wait happens. Thread-safe.
/// </summary>
internal static class Readiness
{
    private static readonly Lazy<int> s_poller = new(Start);
    private static readonly ConcurrentDictionary<long, TaskCompletionSource> s_waits = new();
    private static long s_lastToken;

    /// <summary>Completes when the socket is writable or has failed: the next write tells which.</summary>
    /// <exception cref="OperationCanceledException">The token was cancelled first.</exception>
    /// <exception cref="IOException">The wait could not be set up.</exception>
    public static Task WaitToWriteAsync(SafeSocketHandle socket, CancellationToken cancellationToken) =>
        WaitAsync(socket, NativeWait.Writable, cancellationToken);

    /// <summary>
    /// Completes when the socket holds as many bytes as its SO_RCVLOWAT says (socket(7)), when the peer has sent its last, or
    /// when the socket has failed.
    /// </summary>
    /// <inheritdoc cref="WaitToWriteAsync" path="/exception"/>
    public static Task WaitToReadAsync(SafeSocketHandle socket, CancellationToken cancellationToken) =>
        WaitAsync(socket, NativeWait.Readable, cancellationToken);

    private static async Task WaitAsync(SafeSocketHandle socket, NativeWait what, CancellationToken cancellationToken)
    {
        int poller = s_poller.Value;
        long token = Interlocked.Increment(ref s_lastToken);
        TaskCompletionSource wait = new(TaskCreationOptions.RunContinuationsAsynchronously);
        s_waits[token] = wait;
        int watch = -1;
        try
        {
            watch = Arm(poller, socket, what, token);
            using (cancellationToken.UnsafeRegister(static (w, t) => ((TaskCompletionSource)w!).TrySetCanceled(t), wait))
            {
                await wait.Task.ConfigureAwait(false);
            }
        }
        finally
        {
            s_waits.TryRemove(token, out _);
            if (watch >= 0)
            {
                // The watch is a duplicate of the socket: the connection ends only when it is closed, too.
                _ = KtlsNative.KtlsNative_PollerDisarm(poller, watch);
            }
        }
    }

    private static unsafe int Arm(int poller, SafeSocketHandle socket, NativeWait what, long token)
    {
        int watch;
        int errno = KtlsNative.KtlsNative_PollerArm(poller, socket, what, token, &watch);
        return errno == 0 ? watch : throw TlsErrors.Call($"waiting for the socket to be {what}", errno);
    }

    private static unsafe int Start()
    {
        int created;
        int errno = KtlsNative.KtlsNative_PollerCreate(&created);
        if (errno != 0)
        {
            throw TlsErrors.Call("creating an epoll set", errno);
        }

        int poller = created;
        new Thread(() => Serve(poller)) { IsBackground = true, Name = "KernelTls readiness" }.Start();
        return poller;
    }

    private static unsafe void Serve(int poller)
    {
        const int Capacity = 64;
        long* tokens = stackalloc long[Capacity];
        while (true)
        {
            int count;
            int errno = KtlsNative.KtlsNative_PollerWait(poller, tokens, Capacity, &count);
            if (errno != 0)
            {
                // Cannot happen with a valid epoll descriptor; if it does, nobody may wait forever.
                Exception failure = TlsErrors.Call("waiting on the epoll set", errno);
                foreach (TaskCompletionSource wait in s_waits.Values)
                {
                    wait.TrySetException(failure);
                }

                return;
            }

            for (int i = 0; i < count; i++)
            {
                if (s_waits.TryRemove(tokens[i], out TaskCompletionSource? wait))
                {
                    wait.TrySetResult();
                }
            }
        }
    }
}

using System.Net.Sockets;
using KernelTls.Interop;

namespace KernelTls.IO;

/// <summary>
/// Waits for what .NET's Socket has no operation for: room in the send buffer, and more bytes than are there already. Only
/// OpenSSL's own writes (handshake flights, KeyUpdate, alerts, the DirectOpenSsl path) and sendfile need the first, when the
/// buffer is full; only who looks at bytes without taking them needs the other. Thread-safe.
/// </summary>
internal static class Readiness
{
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
        int poller = SocketPoller.Shared.Descriptor;
        TaskCompletionSource wait = new(TaskCreationOptions.RunContinuationsAsynchronously);
        long token = SocketPoller.Shared.Expect(failure =>
        {
            if (failure is null)
            {
                wait.TrySetResult();
            }
            else
            {
                wait.TrySetException(failure);
            }
        });
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
            SocketPoller.Shared.Forget(token);
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
}

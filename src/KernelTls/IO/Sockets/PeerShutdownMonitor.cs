using System.Net.Sockets;
using KernelTls.Interop;

namespace KernelTls.IO;

/// <summary>
/// Reports once that the peer has closed its half of a connection or reset it, while no receive is pending.
/// </summary>
/// <remarks>
/// Nothing is received: data that arrived before the end can still be read. A record that the kernel refuses is not
/// reported; it fails the next read. After Dispose there are no more reports, and the end of the connection does not
/// wake the shared thread. A watch ends by itself when the socket is closed.
/// </remarks>
internal sealed class PeerShutdownMonitor : IDisposable
{
    private readonly SafeSocketHandle _socket;
    private readonly long _token;

    /// <summary>Initializes a new instance of the <see cref="PeerShutdownMonitor"/> class.</summary>
    /// <param name="socket">The connected socket, which must have no other watch.</param>
    /// <param name="ended">The callback. It is called at most once, on a shared thread, and must not block.</param>
    /// <exception cref="IOException">The watch could not be created.</exception>
    /// <exception cref="ObjectDisposedException">The socket is closed.</exception>
    public PeerShutdownMonitor(SafeSocketHandle socket, Action ended)
    {
        int poller = SocketPoller.Shared.Descriptor;
        _socket = socket;
        _token = SocketPoller.Shared.Register(_ => ended());
        int errno = 0;
        bool isWatched = false;
        try
        {
            errno = KtlsNative.KtlsNative_PollerWatchPeer(poller, socket, _token);
            isWatched = errno == 0;
        }
        finally
        {
            if (!isWatched)
            {
                SocketPoller.Shared.Unregister(_token);
            }
        }

        if (!isWatched)
        {
            throw TlsErrors.Call("watching for the peer's end", errno);
        }
    }

    public void Dispose()
    {
        if (!SocketPoller.Shared.Unregister(_token))
        {
            return;
        }

        try
        {
            // A failure means that there is no watch any more.
            _ = KtlsNative.KtlsNative_PollerDisarm(SocketPoller.Shared.Descriptor, _socket);
        }
        catch (ObjectDisposedException)
        {
            // The socket is closed.
        }
    }
}

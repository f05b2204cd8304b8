using System.Net.Sockets;
using KernelTls.Interop;

namespace KernelTls.IO;

/// <summary>
/// Tells that the peer has ended its half of a connection, or reset it, while nobody receives. Nothing is received for it: what
/// came before the end is still there to be read. Disposed, it tells no more; with the socket it ends by itself.
/// </summary>
internal sealed class PeerWatch : IDisposable
{
    private readonly long _token;

    /// <param name="socket">A connected socket, that has no other watch.</param>
    /// <param name="ended">Called once at most, on a thread that everybody shares: it must not wait.</param>
    /// <exception cref="IOException">The watch could not be set up.</exception>
    /// <exception cref="ObjectDisposedException">The socket is closed.</exception>
    public PeerWatch(SafeSocketHandle socket, Action ended)
    {
        int poller = SocketPoller.Shared.Descriptor;
        _token = SocketPoller.Shared.Expect(_ => ended());
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
                SocketPoller.Shared.Forget(_token);
            }
        }

        if (!isWatched)
        {
            throw TlsErrors.Call("watching for the peer's end", errno);
        }
    }

    public void Dispose() => SocketPoller.Shared.Forget(_token);
}

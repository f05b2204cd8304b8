using System.Net.Sockets;
using KernelTls.Interop;

namespace KernelTls.IO;

/// <summary>
/// Represents the waits on one socket, which are registered together. Guarded by the lock of <see cref="SocketReadiness"/>.
/// </summary>
internal sealed class SocketWait
{
    /// <summary>Initializes a new instance of the <see cref="SocketWait"/> class.</summary>
    /// <param name="socket">The socket. Its handle is referenced until <see cref="SocketReadiness"/> releases it.</param>
    /// <exception cref="ObjectDisposedException">The socket is disposed.</exception>
    public SocketWait(SafeSocketHandle socket)
    {
        bool referenced = false;
        socket.DangerousAddRef(ref referenced);
        Socket = socket;
        Descriptor = (int)socket.DangerousGetHandle();
    }

    public SafeSocketHandle Socket { get; }

    public int Descriptor { get; }

    public List<TaskCompletionSource> Waiters { get; } = [];

    /// <summary>Gets or sets the union of what the waiters wait for.</summary>
    public NativeWait Events { get; set; }

    /// <summary>
    /// Gets or sets the token by which the poller reports the socket. It is never reused for another registration.
    /// </summary>
    public long Token { get; set; }
}

using System.Net.Sockets;
using System.Runtime.InteropServices;
using KernelTls.Handshake;
using KernelTls.Interop;

namespace KernelTls.IO;

/// <summary>Represents one native step that may call back to validate the peer's certificate.</summary>
/// <remarks>
/// It references the socket's handle like every call, except while the verifier runs: the application's callback may
/// take long, and a socket whose handle is referenced cannot be closed.
/// </remarks>
internal sealed class VerifiedStep : IDisposable
{
    private const int SocketClosed = -1; // KTLS_VERDICT_SOCKET_CLOSED

    private readonly PeerVerifier _verifier;
    private readonly SafeSocketHandle _socket;
    private bool _isReferenced;
    private bool _isSocketClosed;

    /// <summary>Initializes a new instance of the <see cref="VerifiedStep"/> class and references the socket.</summary>
    /// <exception cref="ObjectDisposedException">The socket is closed.</exception>
    public VerifiedStep(PeerVerifier verifier, SafeSocketHandle socket)
    {
        _verifier = verifier;
        _socket = socket;
        _socket.DangerousAddRef(ref _isReferenced);
        Descriptor = (int)_socket.DangerousGetHandle();
    }

    public int Descriptor { get; }

    /// <summary>Receives the shim's callback, whose state is a <see cref="GCHandle"/> of the step.</summary>
    [UnmanagedCallersOnly]
    public static unsafe int OnVerify(nint state, nint* chain, int count, NativeStaple staple, nint ssl) =>
        ((VerifiedStep)GCHandle.FromIntPtr(state).Target!).Verify(chain, count, staple, ssl);

    /// <summary>
    /// Throws if the socket was closed while the verifier ran and the verifier did not refuse the peer. The result of
    /// the step then says nothing about the peer.
    /// </summary>
    /// <exception cref="ObjectDisposedException">The socket was closed.</exception>
    public void ThrowIfSocketClosed() => ObjectDisposedException.ThrowIf(_isSocketClosed && _verifier.Refusal is null, typeof(Socket));

    public void Dispose()
    {
        if (_isReferenced)
        {
            _isReferenced = false;
            _socket.DangerousRelease();
        }
    }

    private unsafe int Verify(nint* chain, int count, NativeStaple staple, nint ssl)
    {
        Dispose();
        int code = _verifier.Verify(chain, count, staple, ssl);
        try
        {
            // The reference succeeded, so the socket is open and the descriptor is still its own.
            _socket.DangerousAddRef(ref _isReferenced);
            return code;
        }
        catch (ObjectDisposedException)
        {
            _isSocketClosed = true;
            return SocketClosed;
        }
    }
}

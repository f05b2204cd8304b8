using System.Net.Sockets;
using System.Runtime.InteropServices;
using System.Security.Authentication;
using KernelTls.Interop;
using Microsoft.Win32.SafeHandles;

namespace KernelTls.IO;

/// <summary>
/// The only owner and user of one SSL*: every call goes through one lock, none waits inside it. Each call names the socket's
/// SafeHandle, whose reference keeps the descriptor from being reused meanwhile; between calls nothing pins it.
/// </summary>
internal sealed partial class TlsConnection : IDisposable
{
    private readonly Lock _lock = new();
    private readonly SafeTlsConnectionHandle _handle;
    private readonly SafeSocketHandle _socket;

    private TlsConnection(SafeTlsConnectionHandle handle, SafeSocketHandle socket)
    {
        _handle = handle;
        _socket = socket;
    }

    public SafeSocketHandle Socket => _socket;

    /// <summary>By somebody else, as an aborted connection's is: no call can be made any more.</summary>
    public bool IsSocketClosed => _socket.IsClosed;

    /// <exception cref="IOException">The socket is not usable, or OpenSSL is out of memory.</exception>
    public static unsafe TlsConnection Create(SafeTlsContextHandle context, SafeSocketHandle socket, string? serverName)
    {
        nint connection = 0;
        NativeResult result;
        int errno = KtlsNative.KtlsNative_ConnectionCreate(context, socket, serverName, &connection, &result);
        if (errno != 0)
        {
            throw TlsErrors.Call("binding OpenSSL to the socket", errno);
        }

        return result.Status == NativeStatus.Ok
            ? new TlsConnection(new SafeTlsConnectionHandle(connection), socket)
            : throw TlsErrors.Handshake(result);
    }

    /// <summary>SSL_read; with an empty buffer only control records are taken, and Ok says that data is ready.</summary>
    public unsafe NativeResult Read(Span<byte> buffer)
    {
        NativeResult result;
        int errno;
        fixed (byte* bytes = buffer)
        {
            lock (_lock)
            {
                errno = KtlsNative.KtlsNative_Read(_handle, _socket, bytes, buffer.Length, &result);
            }
        }

        if (errno == Errno.Busy)
        {
            throw new InvalidOperationException(
                "The client's answer to NegotiateClientCertificateAsync comes next: call that again before reading on.");
        }

        Check(errno);
        return result;
    }

    /// <summary>Tells OpenSSL why a receive of the socket failed; it takes the record or sends the alert when it is asked next.</summary>
    /// <param name="errno">The <see cref="SocketOutcome.RecordErrno"/> of that receive.</param>
    public void ReceiveFailed(int errno)
    {
        lock (_lock)
        {
            Check(KtlsNative.KtlsNative_ReceiveFailed(_handle, _socket, errno));
        }
    }

    /// <summary>SSL_write, where sending is not in the kernel. May take a part; after WantWrite the same bytes must follow.</summary>
    public unsafe NativeResult Write(ReadOnlySpan<byte> buffer)
    {
        NativeResult result;
        fixed (byte* bytes = buffer)
        {
            lock (_lock)
            {
                Check(KtlsNative.KtlsNative_Write(_handle, _socket, bytes, buffer.Length, &result));
            }
        }

        return result;
    }

    /// <summary>
    /// A step of sendfile(2), where sending is in the kernel. May send a part; Ok with none says that the file has none there.
    /// Takes no lock, because it uses no SSL*: reading the file may block, and a read is not to wait for that.
    /// </summary>
    public unsafe NativeResult SendFile(SafeFileHandle file, long offset, int count)
    {
        NativeResult result;
        Check(KtlsNative.KtlsNative_SendFile(_handle, _socket, file, offset, count, &result));
        return result;
    }

    /// <summary>Sends close_notify, once.</summary>
    public unsafe NativeResult Shutdown()
    {
        NativeResult result;
        lock (_lock)
        {
            Check(KtlsNative.KtlsNative_Shutdown(_handle, _socket, &result));
        }

        return result;
    }

    /// <summary>Sends a KeyUpdate, or the one that answers the peer's.</summary>
    /// <returns><see langword="false"/> where it cannot be sent without breaking the connection; nothing was sent.</returns>
    public unsafe bool TryUpdateKey(bool requestPeer, out NativeResult result)
    {
        result = default;
        int errno;
        fixed (NativeResult* outcome = &result)
        {
            lock (_lock)
            {
                errno = KtlsNative.KtlsNative_KeyUpdate(_handle, _socket, requestPeer ? 1 : 0, outcome);
            }
        }

        if (errno == Errno.NotSupported)
        {
            return false;
        }

        Check(errno);
        return true;
    }

    public unsafe ConnectionInfo GetInfo()
    {
        ConnectionInfo info;
        lock (_lock)
        {
            Check(KtlsNative.KtlsNative_GetConnectionInfo(_handle, &info));
        }

        return info;
    }

    public void Dispose()
    {
        lock (_lock)
        {
            _handle.Dispose();
        }
    }

    internal static SslProtocols ToSslProtocols(int version) => version switch
    {
#pragma warning disable SYSLIB0039 // Only where OpenSSL's own configuration allows them.
        0x0301 => SslProtocols.Tls,
        0x0302 => SslProtocols.Tls11,
#pragma warning restore SYSLIB0039
        0x0303 => SslProtocols.Tls12,
        0x0304 => SslProtocols.Tls13,
        _ => SslProtocols.None,
    };

    private static void Check(int errno)
    {
        if (errno != 0)
        {
            throw TlsErrors.Call("a call to OpenSSL", errno);
        }
    }
}

using System.Net.Sockets;
using System.Runtime.InteropServices;
using System.Security.Authentication;
using KernelTls.Interop;
using Microsoft.Win32.SafeHandles;

namespace KernelTls.IO;

/// <summary>
/// Owns one SSL* and makes all calls on it, under one lock. No call waits inside the lock, except for the application's
/// validation callback.
/// </summary>
/// <remarks>
/// Each call passes the socket's SafeHandle, whose reference prevents the descriptor from being reused during the call.
/// Between calls nothing keeps the socket alive. The members that the receiving half calls are virtual for
/// tests/KernelTls.Fuzz, as in <see cref="SocketReceiver"/>.
/// </remarks>
internal partial class TlsConnection : IDisposable
{
    private readonly Lock _lock;
    private readonly SafeTlsConnectionHandle _handle;
    private readonly SafeSocketHandle _socket;
    private volatile bool _moved;

    protected TlsConnection(SafeTlsConnectionHandle handle, SafeSocketHandle socket)
        : this(handle, socket, new Lock())
    {
    }

    private TlsConnection(SafeTlsConnectionHandle handle, SafeSocketHandle socket, Lock @lock)
    {
        _handle = handle;
        _socket = socket;
        _lock = @lock;
    }

    public SafeSocketHandle Socket => _socket;

    /// <summary>
    /// Gets a value that indicates whether other code closed the socket, for example to abort the connection. No call
    /// is possible after that.
    /// </summary>
    public bool IsSocketClosed => _socket.IsClosed;

    /// <summary>Creates an SSL* and binds it to the socket.</summary>
    /// <exception cref="IOException">The socket is not usable, or OpenSSL is out of memory.</exception>
    public static unsafe TlsConnection Create(SafeTlsContextHandle context, SafeSocketHandle socket, string? serverName)
    {
        nint connection = 0;
        NativeResult result;
        int errno = KtlsNative.KtlsNative_ConnectionCreate(context, socket, serverName, &connection, &result);
        if (errno != 0)
        {
            // The peer has reset the connection after its first bytes.
            throw errno == Errno.NotConnected
                ? TlsErrors.Socket(TlsErrors.CannotAuthenticate, SocketError.ConnectionReset)
                : TlsErrors.Call("binding OpenSSL to the socket", errno);
        }

        return result.Status == NativeStatus.Ok
            ? new TlsConnection(new SafeTlsConnectionHandle(connection), socket)
            : throw TlsErrors.Handshake(result);
    }

    /// <summary>
    /// Binds the SSL* to another descriptor of the same socket, and returns its new owner. On this instance only Dispose
    /// is allowed afterwards, and does nothing; other calls fail.
    /// </summary>
    /// <exception cref="IOException">The SSL* is not bound to this instance's socket.</exception>
    /// <exception cref="ObjectDisposedException">A socket is closed.</exception>
    public TlsConnection MoveTo(SafeSocketHandle socket)
    {
        lock (_lock)
        {
            Check(KtlsNative.KtlsNative_ConnectionMove(_handle, _socket, socket));
            _moved = true;
            return new TlsConnection(_handle, socket, _lock);
        }
    }

    /// <summary>
    /// Calls SSL_read. With an empty buffer it only processes control records, and Ok means that data is ready. The caller must have
    /// the turn to receive (<see cref="TlsReceiver"/>), because OpenSSL receives from the socket.
    /// </summary>
    public virtual unsafe NativeResult Read(Span<byte> buffer)
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
                "The next message is the client's answer to NegotiateClientCertificateAsync. Call that method again before reading.");
        }

        Check(errno);
        return result;
    }

    /// <summary>
    /// Passes the reason of a failed socket receive to OpenSSL, which reads the record or sends the alert on the next
    /// call.
    /// </summary>
    /// <param name="errno">The <see cref="SocketReceiveResult.RecordErrno"/> of the receive.</param>
    public virtual void ReceiveFailed(int errno)
    {
        lock (_lock)
        {
            Check(KtlsNative.KtlsNative_ReceiveFailed(_handle, _socket, errno));
        }
    }

    /// <summary>
    /// Encrypts data and sends the records, if sending is not in the kernel. The result's Bytes are those of the data that were encrypted.
    /// After WantWrite a part of the records is not sent: wait for room, and call this again with what is left of the data, or with nothing.
    /// </summary>
    /// <remarks>
    /// Sends outside the lock. A send takes several times as long as the encryption of a record, and a read on another thread
    /// would wait for it.
    /// </remarks>
    public NativeResult Write(ReadOnlySpan<byte> data)
    {
        int encrypted = 0;
        NativeResult result = default;
        while (encrypted < data.Length && (result = Encrypt(data[encrypted..])).Status == NativeStatus.Ok)
        {
            encrypted += (int)result.Bytes;
        }

        NativeResult sent = Flush();
        result = result.Status is NativeStatus.Ok or NativeStatus.WantWrite ? sent : result;
        result.Bytes = encrypted;
        return result;
    }

    /// <summary>
    /// Performs a step of sendfile(2), if sending is in the kernel. It may send only a part. Ok with no bytes means
    /// that the file has none at the offset.
    /// </summary>
    /// <remarks>
    /// Takes no lock, because it does not use the SSL*. Reading the file may block, and a concurrent read must not wait
    /// for that.
    /// </remarks>
    /// <param name="file">The file.</param>
    /// <param name="offset">The offset in the file.</param>
    /// <param name="count">The number of bytes.</param>
    /// <param name="isLast">Whether no more of the file follows, so that its last records should share segments.</param>
    public unsafe NativeResult SendFile(SafeFileHandle file, long offset, int count, bool isLast)
    {
        NativeResult result;
        Check(KtlsNative.KtlsNative_SendFile(_handle, _socket, file, offset, count, isLast ? 1 : 0, &result));
        return result;
    }

    /// <summary>Sends close_notify once.</summary>
    public unsafe NativeResult Shutdown()
    {
        NativeResult result;
        lock (_lock)
        {
            Check(KtlsNative.KtlsNative_Shutdown(_handle, _socket, &result));
        }

        return result;
    }

    /// <summary>
    /// Sends close_notify once, and then the socket's FIN in the same segment. WantWrite means that there is no space for it, or that
    /// kernel TLS holds records which the FIN would cut off. Its Bytes are those that the peer has acknowledged.
    /// </summary>
    public unsafe NativeResult CloseSending()
    {
        NativeResult result;
        lock (_lock)
        {
            Check(KtlsNative.KtlsNative_CloseSending(_handle, _socket, &result));
        }

        return result;
    }

    /// <summary>Sends a KeyUpdate, or the response to the peer's.</summary>
    /// <returns>False if it cannot be sent without breaking the connection. Nothing was sent then.</returns>
    public virtual unsafe bool TryUpdateKey(bool requestPeer, out NativeResult result)
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

    /// <summary>
    /// Frees the SSL* now or, if a call is in progress, at its end. Takes no lock, so it never waits.
    /// </summary>
    public void Dispose()
    {
        if (!_moved)
        {
            _handle.Dispose();
        }
    }

    internal static SslProtocols ToSslProtocols(int version) => version switch
    {
#pragma warning disable SYSLIB0039 // Possible only if OpenSSL's configuration allows them.
        0x0301 => SslProtocols.Tls,
        0x0302 => SslProtocols.Tls11,
#pragma warning restore SYSLIB0039
        0x0303 => SslProtocols.Tls12,
        0x0304 => SslProtocols.Tls13,
        _ => SslProtocols.None,
    };

    /// <summary>Calls SSL_write, whose record waits for <see cref="Flush"/>. After WantWrite there must be a flush first.</summary>
    private unsafe NativeResult Encrypt(ReadOnlySpan<byte> data)
    {
        NativeResult result;
        fixed (byte* bytes = data)
        {
            lock (_lock)
            {
                Check(KtlsNative.KtlsNative_Write(_handle, _socket, bytes, data.Length, &result));
            }
        }

        return result;
    }

    /// <summary>Sends the encrypted records. Takes no lock, because it does not use the SSL*.</summary>
    private unsafe NativeResult Flush()
    {
        NativeResult result;
        Check(KtlsNative.KtlsNative_Flush(_handle, _socket, &result));
        return result;
    }

    private static void Check(int errno)
    {
        if (errno != 0)
        {
            throw TlsErrors.Call("a call to OpenSSL", errno);
        }
    }
}

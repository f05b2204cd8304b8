using System.Net.Security;
using System.Net.Sockets;
using System.Runtime.CompilerServices;

namespace KernelTls.Bench.Modes;

/// <summary>
/// Represents the cheapest stream over a <see cref="SocketSession"/>. A read tries the session first and then waits
/// with an empty receive, without allocations. The stream cannot wait for room in the socket's buffer. The rows that
/// use it never fill that buffer.
/// </summary>
internal sealed class SocketSessionStream : Stream
{
    private readonly Socket _socket;
    private readonly SocketSession _session;

    private SocketSessionStream(Socket socket, SocketSession session)
    {
        _socket = socket;
        _session = session;
    }

    public override bool CanRead => true;

    public override bool CanSeek => false;

    public override bool CanWrite => true;

    public override long Length => throw new NotSupportedException();

    public override long Position
    {
        get => throw new NotSupportedException();
        set => throw new NotSupportedException();
    }

    public TlsCipherSuite CipherSuite => _session.CipherSuite;

    /// <param name="socket">The socket. The stream takes ownership of it.</param>
    /// <param name="context">A context from <see cref="SocketSession.CreateContext"/>.</param>
    public static async Task<Stream> ShakeHandsAsync(Socket socket, object context)
    {
        socket.Blocking = false;
        SocketSession session = new(socket, context);
        for (SocketSession.Status status = session.Handshake(); status != SocketSession.Status.Complete; status = session.Handshake())
        {
            switch (status)
            {
                case SocketSession.Status.NeedMoreData:
                    _ = await socket.ReceiveAsync(Memory<byte>.Empty);
                    break;
                case SocketSession.Status.NeedsCertificateValidation:
                    session.ValidatePeer();
                    break;
                default:
                    throw new BenchFailedException($"tlssession: the handshake came to {status}");
            }
        }

        return new SocketSessionStream(socket, session);
    }

    /// <summary>Sends close_notify.</summary>
    public void EndSending()
    {
        SocketSession.Status status = _session.Shutdown();
        if (status is not (SocketSession.Status.Complete or SocketSession.Status.NeedMoreData or SocketSession.Status.Closed))
        {
            throw new BenchFailedException($"tlssession: the shutdown came to {status}");
        }
    }

    [AsyncMethodBuilder(typeof(PoolingAsyncValueTaskMethodBuilder<>))]
    public override async ValueTask<int> ReadAsync(Memory<byte> buffer, CancellationToken cancellationToken = default)
    {
        if (buffer.IsEmpty)
        {
            return await _socket.ReceiveAsync(buffer, cancellationToken);
        }

        while (true)
        {
            SocketSession.Status status = _session.Read(buffer.Span, out int count);
            switch (status)
            {
                case SocketSession.Status.Complete when count > 0:
                    return count;
                case SocketSession.Status.Closed:
                    return 0;
                case SocketSession.Status.Complete or SocketSession.Status.NeedMoreData:
                    _ = await _socket.ReceiveAsync(Memory<byte>.Empty, cancellationToken);
                    break;
                default:
                    throw new BenchFailedException($"tlssession: a read came to {status}");
            }
        }
    }

    public override ValueTask WriteAsync(ReadOnlyMemory<byte> buffer, CancellationToken cancellationToken = default)
    {
        for (int sent = 0; sent < buffer.Length;)
        {
            SocketSession.Status status = _session.Write(buffer.Span[sent..], out int count);
            if (status != SocketSession.Status.Complete)
            {
                throw new BenchFailedException($"tlssession: a write came to {status} behind {sent} of {buffer.Length} bytes");
            }

            sent += count;
        }

        return ValueTask.CompletedTask;
    }

    public override void Flush()
    {
    }

    public override int Read(byte[] buffer, int offset, int count) => throw new NotSupportedException();

    public override void Write(byte[] buffer, int offset, int count) => throw new NotSupportedException();

    public override long Seek(long offset, SeekOrigin origin) => throw new NotSupportedException();

    public override void SetLength(long value) => throw new NotSupportedException();

    protected override void Dispose(bool disposing)
    {
        if (disposing)
        {
            _session.Dispose();
            _socket.Dispose();
        }

        base.Dispose(disposing);
    }
}

using System.Buffers;
using System.Net.Sockets;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;
using System.Security.Authentication;

namespace KernelTls.Bench.Poc;

/// <summary>
/// Represents the data path of the closed proof of concept (dotnet/runtime, pull request 125110) in the version that
/// produced its published figures. A read calls SSL_read for one record at a time until there are no more records. A
/// peek at one byte waits for readiness. Small reads use a buffer of 32 KiB. Writes are plain sends to the kernel.
/// </summary>
internal sealed class PocStream : Stream
{
    private const int ReadAheadSize = 32 * 1024;

    private readonly Socket _socket;
    private readonly byte[] _peek = new byte[1];
    private byte[]? _readAhead;
    private int _start;
    private int _end;

    public PocStream(Socket socket, nint ssl)
    {
        _socket = socket;
        Ssl = ssl;
    }

    public nint Ssl { get; private set; }

    public bool IsClient { get; init; }

    public bool IsInKernel =>
        LibSsl.BIO_ctrl(LibSsl.SSL_get_wbio(Ssl), LibSsl.GetKtlsSend, 0, 0) > 0
        && LibSsl.BIO_ctrl(LibSsl.SSL_get_rbio(Ssl), LibSsl.GetKtlsReceive, 0, 0) > 0;

    public override bool CanRead => true;

    public override bool CanWrite => true;

    public override bool CanSeek => false;

    public override long Length => throw new NotSupportedException();

    public override long Position
    {
        get => throw new NotSupportedException();
        set => throw new NotSupportedException();
    }

    public async Task ShakeHandsAsync()
    {
        while (true)
        {
            LibSsl.ERR_clear_error();
            int result = LibSsl.SSL_do_handshake(Ssl);
            if (result == 1)
            {
                return;
            }

            switch (ErrorOf(result))
            {
                case LibSsl.ErrorWantRead:
                    await WaitReadableAsync();
                    break;
                case LibSsl.ErrorWantWrite:
                    // This is not a proper way to wait, but the proof of concept waited in this way.
                    await Task.Delay(1);
                    break;
                default:
                    throw new AuthenticationException("poc: the handshake failed");
            }
        }
    }

    /// <summary>
    /// Sends close_notify. The original did not send it, but every mode is measured with an orderly close.
    /// </summary>
    public void EndSending()
    {
        LibSsl.ERR_clear_error();
        if (LibSsl.SSL_shutdown(Ssl) < 0)
        {
            throw new IOException("poc: close_notify was not sent");
        }
    }

    [AsyncMethodBuilder(typeof(PoolingAsyncValueTaskMethodBuilder<>))]
    public override async ValueTask<int> ReadAsync(Memory<byte> buffer, CancellationToken cancellationToken = default)
    {
        if (_start < _end)
        {
            return TakeBuffered(buffer);
        }

        if (buffer.IsEmpty)
        {
            await WaitReadableAsync();
            return 0;
        }

        bool readsAhead = buffer.Length < ReadAheadSize;
        while (true)
        {
            Memory<byte> target = readsAhead ? _readAhead ??= ArrayPool<byte>.Shared.Rent(ReadAheadSize) : buffer;
            int received = Fill(target.Span, out int error);
            if (received > 0)
            {
                _end = readsAhead ? received : 0;
                return readsAhead ? TakeBuffered(buffer) : received;
            }

            switch (error)
            {
                case LibSsl.ErrorZeroReturn:
                    return 0;
                case LibSsl.ErrorWantRead:
                    await WaitReadableAsync();
                    break;
                default:
                    throw new IOException($"poc: SSL_read failed ({error})");
            }
        }
    }

    [AsyncMethodBuilder(typeof(PoolingAsyncValueTaskMethodBuilder))]
    public override async ValueTask WriteAsync(ReadOnlyMemory<byte> buffer, CancellationToken cancellationToken = default) =>
        await _socket.SendAsync(buffer, SocketFlags.None, cancellationToken);

    public override int Read(byte[] buffer, int offset, int count) => throw new NotSupportedException();

    public override void Write(byte[] buffer, int offset, int count) => throw new NotSupportedException();

    public override void Flush()
    {
    }

    public override long Seek(long offset, SeekOrigin origin) => throw new NotSupportedException();

    public override void SetLength(long value) => throw new NotSupportedException();

    protected override void Dispose(bool disposing)
    {
        if (disposing && Ssl != 0)
        {
            _socket.Dispose();
            LibSsl.SSL_free(Ssl);
            Ssl = 0;
            ReturnBuffer();
        }

        base.Dispose(disposing);
    }

    [AsyncMethodBuilder(typeof(PoolingAsyncValueTaskMethodBuilder))]
    private async ValueTask WaitReadableAsync()
    {
        try
        {
            _ = await _socket.ReceiveAsync(_peek.AsMemory(), SocketFlags.Peek);
        }
        catch (SocketException)
        {
            // The socket has a control record or has reached the end of the connection. SSL_read reports which one.
        }
    }

    /// <summary>Calls SSL_read until there are no more records or no more room. Each call returns one record.</summary>
    private unsafe int Fill(Span<byte> target, out int error)
    {
        int received = 0;
        error = 0;
        fixed (byte* start = target)
        {
            while (received < target.Length)
            {
                LibSsl.ERR_clear_error();
                int result = LibSsl.SSL_read(Ssl, start + received, target.Length - received);
                if (result <= 0)
                {
                    error = ErrorOf(result);
                    break;
                }

                received += result;
            }
        }

        return received;
    }

    private int ErrorOf(int result)
    {
        int errno = Marshal.GetLastPInvokeError();
        int error = LibSsl.SSL_get_error(Ssl, result);
        return error == LibSsl.ErrorSyscall && errno == LibSsl.Again ? LibSsl.ErrorWantRead : error;
    }

    private int TakeBuffered(Memory<byte> buffer)
    {
        int taken = Math.Min(buffer.Length, _end - _start);
        _readAhead.AsSpan(_start, taken).CopyTo(buffer.Span);
        _start += taken;
        if (_start == _end)
        {
            _start = _end = 0;
            ReturnBuffer();
        }

        return taken;
    }

    private void ReturnBuffer()
    {
        if (_readAhead is { } buffer)
        {
            _readAhead = null;
            ArrayPool<byte>.Shared.Return(buffer);
        }
    }
}

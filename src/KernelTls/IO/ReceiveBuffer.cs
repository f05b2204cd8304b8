using System.Buffers;

namespace KernelTls.IO;

/// <summary>
/// Holds received bytes that no read has taken: those of a receive that exceed the caller's buffer, and those that precede a
/// client's certificate. Not thread-safe.
/// </summary>
/// <remarks>
/// The buffer comes from the shared pool and is returned with its last byte, so that an idle connection holds none.
/// </remarks>
internal struct ReceiveBuffer
{
    /// <summary>The size of one full TLS record (RFC 8446, section 5.1).</summary>
    public const int Capacity = 16 * 1024;

    private byte[]? _buffer;
    private int _start;
    private int _end;

    public readonly bool IsEmpty => _buffer is null;

    /// <summary>Receives once without waiting. Returns <see langword="null"/> if nothing has arrived.</summary>
    public SocketReceiveResult? Fill(SocketReceiver socket)
    {
        byte[] buffer = ArrayPool<byte>.Shared.Rent(Capacity);
        SocketReceiveResult? result = socket.TryReceive(buffer.AsSpan(0, Capacity));
        if (result is { Bytes: > 0 } received)
        {
            _buffer = buffer;
            _end = received.Bytes;
        }
        else
        {
            ArrayPool<byte>.Shared.Return(buffer);
        }

        return result;
    }

    /// <summary>Returns the room behind the bytes, which is empty when the buffer is full. Follow it with <see cref="Append"/>.</summary>
    public Span<byte> GetRoom()
    {
        _buffer ??= ArrayPool<byte>.Shared.Rent(Capacity);
        return _buffer.AsSpan(_end, Capacity - _end);
    }

    /// <summary>Adds the bytes that were written to the room.</summary>
    public void Append(int count)
    {
        _end += count;
        if (_start == _end)
        {
            Release();
        }
    }

    /// <summary>Moves as many bytes as fit into the destination. Returns 0 for an empty destination.</summary>
    public int Read(Span<byte> destination)
    {
        int bytesRead = Math.Min(destination.Length, _end - _start);
        _buffer.AsSpan(_start, bytesRead).CopyTo(destination);
        _start += bytesRead;
        if (_start == _end)
        {
            Release();
        }

        return bytesRead;
    }

    public void Release()
    {
        if (_buffer is { } buffer)
        {
            _buffer = null;
            _start = _end = 0;
            ArrayPool<byte>.Shared.Return(buffer);
        }
    }
}

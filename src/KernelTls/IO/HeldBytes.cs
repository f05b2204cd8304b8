using System.Buffers;

namespace KernelTls.IO;

/// <summary>
/// What one receive brought beyond the caller's buffer. The buffer comes from the shared pool and goes back with its last
/// byte, so that a connection that waits holds none. Not thread-safe.
/// </summary>
internal struct HeldBytes
{
    /// <summary>One full TLS record (RFC 8446, section 5.1).</summary>
    public const int Capacity = 16 * 1024;

    private byte[]? _buffer;
    private int _start;
    private int _end;

    public readonly bool IsEmpty => _buffer is null;

    /// <summary>One receive that does not wait. <see langword="null"/>: nothing is there.</summary>
    public SocketOutcome? Fill(SocketReceiver socket)
    {
        byte[] buffer = ArrayPool<byte>.Shared.Rent(Capacity);
        SocketOutcome? outcome = socket.TryReceive(buffer.AsSpan(0, Capacity));
        if (outcome is { Bytes: > 0 } received)
        {
            _buffer = buffer;
            _start = 0;
            _end = received.Bytes;
        }
        else
        {
            ArrayPool<byte>.Shared.Return(buffer);
        }

        return outcome;
    }

    /// <summary>Moves as much as fits; 0 for an empty destination.</summary>
    public int Take(Span<byte> destination)
    {
        int taken = Math.Min(destination.Length, _end - _start);
        _buffer.AsSpan(_start, taken).CopyTo(destination);
        _start += taken;
        if (_start == _end)
        {
            Release();
        }

        return taken;
    }

    public void Release()
    {
        if (_buffer is { } buffer)
        {
            _buffer = null;
            ArrayPool<byte>.Shared.Return(buffer);
        }
    }
}

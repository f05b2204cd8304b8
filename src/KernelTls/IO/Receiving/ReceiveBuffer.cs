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

    /// <summary>Smaller reads share one receive if more has arrived than one of them asked for.</summary>
    public const int SmallRead = 2048;

    /// <summary>While data streams, smaller reads share receives of <see cref="LargeCapacity"/>.</summary>
    private const int SmallReadOfStream = 32 * 1024;

    /// <summary>
    /// The size while data streams. The kernel decrypts a record into the reader's memory only if all of it fits, and otherwise into pages of
    /// its own, from which it copies.
    /// </summary>
    private const int LargeCapacity = 64 * 1024;

    /// <summary>The number of fills without need of a large buffer after which it becomes small.</summary>
    private const int FillsUntilSmall = 8;

    private byte[]? _buffer;
    private int _start;
    private int _end;
    private bool _isLarge;
    private int _smallFills;

    public readonly bool IsEmpty => _buffer is null;

    /// <summary>Gets the size of the next fill.</summary>
    private readonly int Size => _isLarge ? LargeCapacity : Capacity;

    /// <summary>Gets a value that indicates whether the last receive was filled, so that more has probably arrived.</summary>
    public bool IsStreaming { get; private set; }

    /// <summary>Receives once without waiting. Returns <see langword="null"/> if nothing has arrived.</summary>
    /// <param name="socket">The socket.</param>
    /// <param name="destination">The memory of the read.</param>
    /// <param name="isDirect">Whether the bytes are in <paramref name="destination"/> instead of this buffer.</param>
    public SocketReceiveResult? Receive(SocketReceiver socket, Span<byte> destination, out bool isDirect)
    {
        isDirect = destination.Length >= (IsStreaming ? SmallReadOfStream : SmallRead);
        SocketReceiveResult? result = isDirect ? socket.TryReceive(destination) : Fill(socket);
        IsStreaming = result is { } received && received.Bytes == (isDirect ? destination.Length : Size);
        if (!isDirect)
        {
            Adapt();
        }

        return result;
    }

    /// <summary>Returns the room behind the bytes, which is empty when the buffer is full. Follow it with <see cref="Append"/>.</summary>
    public Span<byte> GetRoom()
    {
        _buffer ??= ArrayPool<byte>.Shared.Rent(Capacity);
        return _buffer.AsSpan(_end, Math.Max(0, Capacity - _end));
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

    private SocketReceiveResult? Fill(SocketReceiver socket)
    {
        byte[] buffer = ArrayPool<byte>.Shared.Rent(Size);
        SocketReceiveResult? result = socket.TryReceive(buffer.AsSpan(0, Size));
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

    /// <summary>Makes the next fill large after a full one, and small again after several that needed no large one.</summary>
    private void Adapt()
    {
        if (IsStreaming)
        {
            _isLarge = true;
            _smallFills = 0;
        }
        else if (_isLarge && _end < Capacity && ++_smallFills == FillsUntilSmall)
        {
            _isLarge = false;
            _smallFills = 0;
        }
    }
}

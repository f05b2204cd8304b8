using Microsoft.Win32.SafeHandles;

namespace KernelTls.IO;

/// <summary>A part of a file on its way out: what is left of it, and whether any of it may have left already.</summary>
internal sealed class FileSection
{
    private readonly long _count;

    /// <exception cref="ArgumentNullException"><paramref name="file"/> is <see langword="null"/>.</exception>
    /// <exception cref="ArgumentException"><paramref name="file"/> is invalid.</exception>
    /// <exception cref="ObjectDisposedException"><paramref name="file"/> is closed.</exception>
    /// <exception cref="ArgumentOutOfRangeException">The section is of no file.</exception>
    /// <exception cref="NotSupportedException">The file cannot seek.</exception>
    public FileSection(SafeFileHandle file, long offset, long count)
    {
        ArgumentNullException.ThrowIfNull(file);
        ArgumentOutOfRangeException.ThrowIfNegative(offset);
        ArgumentOutOfRangeException.ThrowIfNegative(count);
        ArgumentOutOfRangeException.ThrowIfGreaterThan(count, long.MaxValue - offset);

        // For its exceptions: the length itself proves nothing, files of /proc have none.
        _ = RandomAccess.GetLength(file);
        File = file;
        Position = offset;
        _count = Left = count;
    }

    public SafeFileHandle File { get; }

    public long Position { get; private set; }

    public long Left { get; private set; }

    public long Sent => _count - Left;

    /// <summary>From here on a failure leaves the peer with a part: the connection cannot go on.</summary>
    public bool Begun { get; set; }

    public void Advance(long sent)
    {
        Begun = true;
        Position += sent;
        Left -= sent;
    }

    /// <summary>The next bytes of the file, as many as there are up to the buffer's length.</summary>
    /// <exception cref="EndOfStreamException">There are none.</exception>
    public async ValueTask<ReadOnlyMemory<byte>> ReadAsync(byte[] buffer, CancellationToken cancellationToken)
    {
        Memory<byte> part = buffer.AsMemory(0, (int)Math.Min(buffer.Length, Left));
        int read = await RandomAccess.ReadAsync(File, part, Position, cancellationToken).ConfigureAwait(false);
        return read > 0 ? part[..read] : throw EndedEarly();
    }

    /// <summary>The caller has promised the peer more than the file has: only a truncation tells it so.</summary>
    public EndOfStreamException EndedEarly()
    {
        Begun = true;
        return new EndOfStreamException(
            $"The file ended at {Position}: {Sent} of {_count} bytes were sent, and the connection is of no more use for writing.");
    }
}

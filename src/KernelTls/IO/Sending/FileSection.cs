using Microsoft.Win32.SafeHandles;

namespace KernelTls.IO;

/// <summary>
/// Tracks a part of a file that is being sent: the remaining bytes, and whether any of it may have been sent.
/// </summary>
internal sealed class FileSection
{
    private readonly long _count;

    /// <summary>Initializes a new instance of the <see cref="FileSection"/> class.</summary>
    /// <exception cref="ArgumentNullException"><paramref name="file"/> is <see langword="null"/>.</exception>
    /// <exception cref="ArgumentException"><paramref name="file"/> is invalid.</exception>
    /// <exception cref="ObjectDisposedException"><paramref name="file"/> is closed.</exception>
    /// <exception cref="ArgumentOutOfRangeException">
    /// <paramref name="offset"/> or <paramref name="count"/> is negative, or their sum exceeds the largest file offset.
    /// </exception>
    /// <exception cref="NotSupportedException">The file is not seekable.</exception>
    public FileSection(SafeFileHandle file, long offset, long count)
    {
        ArgumentNullException.ThrowIfNull(file);
        ArgumentOutOfRangeException.ThrowIfNegative(offset);
        ArgumentOutOfRangeException.ThrowIfNegative(count);
        ArgumentOutOfRangeException.ThrowIfGreaterThan(count, long.MaxValue - offset);

        // Called for its exceptions. The length itself proves nothing: files of /proc have none.
        _ = RandomAccess.GetLength(file);
        File = file;
        Position = offset;
        _count = Remaining = count;
    }

    public SafeFileHandle File { get; }

    public long Position { get; private set; }

    public long Remaining { get; private set; }

    public long Sent => _count - Remaining;

    /// <summary>
    /// Gets or sets a value that indicates whether a part may have been sent. From then on a failure breaks the
    /// connection.
    /// </summary>
    public bool HasStarted { get; set; }

    public void Advance(long sent)
    {
        HasStarted = true;
        Position += sent;
        Remaining -= sent;
    }

    /// <summary>Reads the next bytes of the file, up to the buffer's length.</summary>
    /// <exception cref="EndOfStreamException">The file has no more bytes.</exception>
    public async ValueTask<ReadOnlyMemory<byte>> ReadAsync(byte[] buffer, CancellationToken cancellationToken)
    {
        Memory<byte> part = buffer.AsMemory(0, (int)Math.Min(buffer.Length, Remaining));
        int read = await RandomAccess.ReadAsync(File, part, Position, cancellationToken).ConfigureAwait(false);
        return read > 0 ? part[..read] : throw CreateEndOfStreamException();
    }

    /// <summary>
    /// Returns the exception for a file that is shorter than promised. The peer expects more data, so only a truncation
    /// informs it.
    /// </summary>
    public EndOfStreamException CreateEndOfStreamException()
    {
        HasStarted = true;
        return new EndOfStreamException(
            $"The file ended at {Position}: {Sent} of {_count} bytes were sent. The connection cannot be written to any more.");
    }
}

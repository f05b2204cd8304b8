using System.Buffers;
using Microsoft.Win32.SafeHandles;

namespace KernelTls.AspNetCore.Tls;

/// <summary>
/// Represents a part of a file on its way through Kestrel, which counts it like memory of the same length.
/// </summary>
/// <remarks>The memory has no content: code that reads or writes it fails, so no incorrect byte can be sent.</remarks>
/// <param name="file">The file.</param>
/// <param name="offset">The offset of the part.</param>
/// <param name="length">The length of the part.</param>
/// <param name="ownsFile">Whether this is the last part, which closes the file.</param>
internal sealed class FilePlaceholder(SafeFileHandle file, long offset, int length, bool ownsFile) : MemoryManager<byte>
{
    private volatile Exception? _failure;

    public int Length => length;

    public bool OwnsFile => ownsFile;

    /// <summary>
    /// Gets a value that indicates whether the connection's writer has queued the part and will send it, or drop it
    /// with the connection.
    /// </summary>
    public bool IsQueued { get; private set; }

    /// <summary>
    /// Gets the number of bytes that the connection's writer was given before the part, without those of files.
    /// </summary>
    public long Position { get; private set; }

    public override Memory<byte> Memory => CreateMemory(length);

    public void MarkQueued(long position)
    {
        IsQueued = true;
        Position = position;
    }

    /// <summary>Sends the part. The stream must have no other data to send at the same time.</summary>
    public async ValueTask SendAsync(KtlsStream stream)
    {
        try
        {
            await stream.SendFileAsync(file, offset, length).ConfigureAwait(false);
        }
        catch (Exception e)
        {
            _failure = e;
            throw;
        }
    }

    /// <summary>
    /// Throws if the file could not be read. The connection is lost in any case, but a client that has disconnected is
    /// not a failure of the application.
    /// </summary>
    /// <exception cref="InvalidOperationException">The file could not be read, or is too short.</exception>
    public void ThrowIfUnreadable()
    {
        if (_failure is { } failure
            && (failure is EndOfStreamException or UnauthorizedAccessException
                || (failure is IOException { InnerException: null } and not KtlsRekeyException)))
        {
            throw new InvalidOperationException(
                "A file could not be sent completely, and the connection was aborted: " + failure.Message, failure);
        }
    }

    /// <summary>Returns whether the part is exactly <paramref name="memory"/>.</summary>
    public bool Matches(ReadOnlyMemory<byte> memory) => memory.Equals(Memory);

    public override Span<byte> GetSpan() => throw Unreadable();

    public override MemoryHandle Pin(int elementIndex = 0) => throw Unreadable();

    public override void Unpin()
    {
    }

    protected override void Dispose(bool disposing)
    {
        if (ownsFile)
        {
            file.Dispose();
        }
    }

    private static InvalidOperationException Unreadable() =>
        new("This memory represents a part of a file that is being sent. Its content cannot be accessed.");
}

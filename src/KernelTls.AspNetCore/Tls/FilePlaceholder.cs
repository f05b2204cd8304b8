using System.Buffers;
using Microsoft.Win32.SafeHandles;

namespace KernelTls.AspNetCore.Tls;

/// <summary>
/// A part of a file on its way through Kestrel, which counts it like any memory of this length. There are no bytes behind it:
/// whoever would read or write them fails, and no wrong byte can be sent.
/// </summary>
/// <param name="file">The file.</param>
/// <param name="offset">Where the part begins.</param>
/// <param name="length">How long it is.</param>
/// <param name="ownsFile">It is the last part: the file is closed with it.</param>
internal sealed class FilePlaceholder(SafeFileHandle file, long offset, int length, bool ownsFile) : MemoryManager<byte>
{
    private volatile Exception? _failure;

    public int Length => length;

    public bool OwnsFile => ownsFile;

    /// <summary>The connection's writer has it: it will be sent, or dropped with the connection.</summary>
    public bool IsTaken { get; private set; }

    public override Memory<byte> Memory => CreateMemory(length);

    public void Take() => IsTaken = true;

    /// <summary>Sends it; the stream has no data of its own to send meanwhile.</summary>
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

    /// <summary>The connection is lost in any case; a client that has gone is no failure of the application's.</summary>
    /// <exception cref="InvalidOperationException">The file could not be read, or not so far.</exception>
    public void ThrowIfUnreadable()
    {
        if (_failure is { } failure
            && (failure is EndOfStreamException or UnauthorizedAccessException
                || (failure is IOException { InnerException: null } and not KtlsRekeyException)))
        {
            throw new InvalidOperationException(
                "A file could not be sent to its end, and the connection was aborted: " + failure.Message, failure);
        }
    }

    /// <summary>Whether this is all of <paramref name="memory"/>.</summary>
    public bool Is(ReadOnlyMemory<byte> memory) => memory.Equals(Memory);

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
        new("This memory stands for a part of a file that is being sent; its bytes are not here.");
}

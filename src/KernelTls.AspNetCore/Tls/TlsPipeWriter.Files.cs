using System.Buffers;
using System.Runtime.CompilerServices;

namespace KernelTls.AspNetCore.Tls;

// Files, which are written in turn with memory.
internal sealed partial class TlsPipeWriter
{
    private FilePlaceholder? _announced;

    /// <summary>
    /// Announces that the next write is <paramref name="file"/>: GetMemory returns its memory, which has no accessible
    /// content, and Advance by its length takes the file and its ownership.
    /// </summary>
    public void Announce(FilePlaceholder file) => _announced = file;

    /// <summary>Reverts <see cref="Announce"/> if the file was not queued.</summary>
    public void Withdraw() => _announced = null;

    /// <summary>
    /// Breaks the connection, because more was counted as written than was written here. Nothing may follow.
    /// </summary>
    public void Break(Exception failure)
    {
        lock (_lock)
        {
            _isBroken = true;
        }

        _failed(failure);
    }

    private void AdvanceBy(FilePlaceholder file, int bytes)
    {
        if (bytes != file.Length)
        {
            InvalidOperationException failure = new($"{bytes} bytes were written instead of the {file.Length} bytes of the file that was announced.");
            Break(failure);
            throw failure;
        }

        OutputSegment segment = NewSegment();
        segment.AttachFile(file);
        _unsent.Append(segment);
        _announced = null;
    }

    [AsyncMethodBuilder(typeof(PoolingAsyncValueTaskMethodBuilder))]
    private async ValueTask WriteWithFilesAsync(OutputSegment? next)
    {
        while (next is not null)
        {
            if (next.File is { } file)
            {
                await file.SendAsync(_stream).ConfigureAwait(false);
                next = next.NextSegment;
                continue;
            }

            ReadOnlySequence<byte> memory = OutputSegments.GetMemoryRun(ref next);
            await _stream.WriteAsync(memory, CancellationToken.None).ConfigureAwait(false);
        }
    }
}

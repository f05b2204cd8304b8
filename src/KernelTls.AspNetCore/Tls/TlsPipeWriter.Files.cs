using System.Buffers;
using System.Runtime.CompilerServices;

namespace KernelTls.AspNetCore.Tls;

// Files, written in turn with what is in memory.
internal sealed partial class TlsPipeWriter
{
    private FilePlaceholder? _announced;

    /// <summary>
    /// What is written next is <paramref name="file"/>: GetMemory gives its memory, which nobody can look into, and Advance by
    /// its length takes it, and its ownership.
    /// </summary>
    public void Announce(FilePlaceholder file) => _announced = file;

    /// <summary>Ends what <see cref="Announce"/> began, where the file was not taken.</summary>
    public void Withdraw() => _announced = null;

    /// <summary>What was counted as written is not what is here: nothing may follow.</summary>
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
            InvalidOperationException failure = new($"{bytes} bytes were written where {file.Length} bytes of a file were announced.");
            Break(failure);
            throw failure;
        }

        OutputSegment segment = NewSegment();
        segment.Take(file);
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

            ReadOnlySequence<byte> memory = OutputSegments.TakeMemory(ref next);
            await _stream.WriteAsync(memory, CancellationToken.None).ConfigureAwait(false);
        }
    }
}

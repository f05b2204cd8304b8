using System.Buffers;

namespace KernelTls.AspNetCore.Tls;

/// <summary>Represents one block of the pool with bytes to send, or a part of a file.</summary>
internal sealed class OutputSegment : ReadOnlySequenceSegment<byte>
{
    /// <summary>The block size of Kestrel's pool.</summary>
    public const int BlockSize = 4096;

    private IMemoryOwner<byte>? _owner;

    public OutputSegment? NextSegment => (OutputSegment?)Next;

    public int Length { get; private set; }

    public FilePlaceholder? File => _owner as FilePlaceholder;

    public ReadOnlySpan<byte> Written => _owner!.Memory.Span[..Length];

    public Memory<byte> Free => _owner!.Memory[Length..];

    public void Rent(MemoryPool<byte> pool, int sizeHint)
    {
        // A request for more than the largest block of the pool is rented from the shared pool.
        int size = Math.Max(sizeHint, BlockSize);
        _owner = size <= pool.MaxBufferSize ? pool.Rent(size) : MemoryPool<byte>.Shared.Rent(size);
    }

    public void AttachFile(FilePlaceholder file)
    {
        file.MarkQueued();
        _owner = file;
        Length = file.Length;
    }

    public void Advance(int bytes) => Length += bytes;

    /// <summary>Fixes the length of the segment and its position after the previous segments.</summary>
    public void Seal(long runningIndex)
    {
        Memory = _owner!.Memory[..Length];
        RunningIndex = runningIndex;
    }

    public void Append(OutputSegment next) => Next = next;

    public void Return()
    {
        _owner?.Dispose();
        _owner = null;
        Memory = default;
        Next = null;
        RunningIndex = 0;
        Length = 0;
    }
}

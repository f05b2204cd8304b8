using System.Buffers;

namespace KernelTls.IO;

/// <summary>
/// Copies the segments of a sequence together, a record's payload at a time, so that small segments share full records
/// (RFC 8446, section 5.1). Used where OpenSSL forms the records: it makes at least one of each write.
/// </summary>
/// <remarks>
/// The buffer comes from the shared pool. A mutable struct: keep it in one variable, and dispose it once the last part is
/// written.
/// </remarks>
internal struct SegmentCoalescer(ReadOnlySequence<byte> data)
{
    private readonly byte[] _buffer = ArrayPool<byte>.Shared.Rent(RecordBudget.RecordSize);
    private ReadOnlySequence<byte> _left = data;

    /// <summary>Gets the number of bytes that the next part can have: 0 at the end, otherwise at most a full record.</summary>
    public readonly int NextLength => (int)Math.Min(_left.Length, RecordBudget.RecordSize);

    /// <summary>Copies the next <paramref name="length"/> bytes. The memory is valid until the next call.</summary>
    public ReadOnlyMemory<byte> Next(int length)
    {
        _left.Slice(0, length).CopyTo(_buffer);
        _left = _left.Slice(length);
        return _buffer.AsMemory(0, length);
    }

    public readonly void Dispose() => ArrayPool<byte>.Shared.Return(_buffer);
}

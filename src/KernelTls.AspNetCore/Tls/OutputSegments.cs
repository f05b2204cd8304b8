using System.Buffers;

namespace KernelTls.AspNetCore.Tls;

/// <summary>A chain of segments, in the order in which they go out.</summary>
internal struct OutputSegments
{
    public OutputSegment? Head;
    public OutputSegment? Tail;
    public long Bytes;
    public bool HasFiles;

    /// <summary>The segments from <paramref name="next"/> up to a file, or the end, which is what is next then.</summary>
    public static ReadOnlySequence<byte> TakeMemory(ref OutputSegment? next)
    {
        OutputSegment first = next!;
        OutputSegment last = first;
        long index = 0;
        for (; next is { File: null }; next = next.NextSegment)
        {
            last = next;
            last.Seal(index);
            index += last.Length;
        }

        return new ReadOnlySequence<byte>(first, 0, last, last.Length);
    }

    public void Append(OutputSegment segment)
    {
        Tail?.Append(segment);
        Head ??= segment;
        Tail = segment;
        Bytes += segment.Length;
        HasFiles |= segment.File is not null;
    }

    /// <summary>All of <paramref name="others"/>, which is empty then.</summary>
    public void Append(ref OutputSegments others)
    {
        if (others.Head is not null)
        {
            Tail?.Append(others.Head);
            Head ??= others.Head;
            Tail = others.Tail;
            Bytes += others.Bytes;
            HasFiles |= others.HasFiles;
            others = default;
        }
    }

    public void Advance(int bytes)
    {
        Tail!.Advance(bytes);
        Bytes += bytes;
    }

    public readonly ReadOnlySequence<byte> AsSequence()
    {
        OutputSegment? next = Head;
        return TakeMemory(ref next);
    }
}

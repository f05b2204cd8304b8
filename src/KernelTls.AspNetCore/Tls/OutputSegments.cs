using System.Buffers;

namespace KernelTls.AspNetCore.Tls;

/// <summary>Represents a chain of segments in the order in which they are sent.</summary>
internal struct OutputSegments
{
    public OutputSegment? Head;
    public OutputSegment? Tail;
    public long Bytes;
    public bool HasFiles;

    /// <summary>
    /// Returns the segments from <paramref name="next"/> up to a file or the end, and moves <paramref name="next"/>
    /// there.
    /// </summary>
    public static ReadOnlySequence<byte> GetMemoryRun(ref OutputSegment? next)
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

    /// <summary>
    /// Copies <paramref name="others"/> into the free space of the last segment. Returns false if there is no space, or
    /// nothing to copy.
    /// </summary>
    public bool TryCopy(in OutputSegments others)
    {
        if (Tail is null or { File: not null }
            || others.Head is null or { File: not null }
            || others.Head != others.Tail
            || others.Bytes > Tail.Free.Length)
        {
            return false;
        }

        others.Head.Written.CopyTo(Tail.Free.Span);
        Advance((int)others.Bytes);
        return true;
    }

    /// <summary>Moves all of <paramref name="others"/>, which is empty afterwards.</summary>
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
        return GetMemoryRun(ref next);
    }
}

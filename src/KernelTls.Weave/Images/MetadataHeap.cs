using System.Reflection.Metadata;

namespace KernelTls.Weave.Images;

/// <summary>A heap of the metadata that grows at its end.</summary>
internal sealed class MetadataHeap
{
    private readonly BlobBuilder _content = new();

    public MetadataHeap(ReadOnlySpan<byte> content) => _content.WriteBytes(content.ToArray());

    public int Length => _content.Count;

    /// <summary>Appends an entry; returns its offset.</summary>
    public uint Add(byte[] entry)
    {
        uint offset = (uint)_content.Count;
        _content.WriteBytes(entry);
        return offset;
    }

    /// <summary>Returns the heap, padded to four bytes.</summary>
    public byte[] ToArray()
    {
        _content.Align(4);
        return _content.ToArray();
    }
}

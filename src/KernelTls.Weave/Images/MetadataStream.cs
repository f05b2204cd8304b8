using System.Buffers.Binary;
using System.Reflection.Metadata;
using System.Text;

namespace KernelTls.Weave.Images;

/// <summary>A stream of the metadata: its header (ECMA-335, II.24.2.2).</summary>
/// <param name="Name">The name of the stream.</param>
/// <param name="Offset">The offset from the root.</param>
/// <param name="Size">The length in bytes.</param>
/// <param name="HeaderLength">The length of the header, including the padding of the name.</param>
internal sealed record MetadataStream(string Name, int Offset, int Size, int HeaderLength)
{
    public static MetadataStream Read(ReadOnlySpan<byte> root, ref int position)
    {
        ReadOnlySpan<byte> header = root[position..];
        ReadOnlySpan<byte> name = header[8..];
        name = name[..name.IndexOf((byte)0)];
        int length = 8 + ((name.Length + 1 + 3) & ~3);
        position += length;
        return new(
            Encoding.ASCII.GetString(name),
            BinaryPrimitives.ReadInt32LittleEndian(header),
            BinaryPrimitives.ReadInt32LittleEndian(header[4..]),
            length);
    }

    public ReadOnlySpan<byte> ContentIn(byte[] metadata) => metadata.AsSpan(Offset, Size);

    public void WriteHeader(BlobBuilder root, int offset, int size)
    {
        root.WriteInt32(offset);
        root.WriteInt32(size);
        byte[] name = new byte[HeaderLength - 8];
        Encoding.ASCII.GetBytes(Name, name);
        root.WriteBytes(name);
    }
}

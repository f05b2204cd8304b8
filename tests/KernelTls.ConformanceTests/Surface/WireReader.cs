using System.Buffers.Binary;

namespace KernelTls.ConformanceTests;

/// <summary>Reads the vectors of a TLS message (RFC 8446, section 3.4).</summary>
internal ref struct WireReader(ReadOnlySpan<byte> rest)
{
    private ReadOnlySpan<byte> _rest = rest;

    public readonly bool IsEmpty => _rest.IsEmpty;

    public byte Byte() => Bytes(1)[0];

    public int Number() => BinaryPrimitives.ReadUInt16BigEndian(Bytes(2));

    public ReadOnlySpan<byte> Bytes(int length)
    {
        ReadOnlySpan<byte> taken = _rest[..length];
        _rest = _rest[length..];
        return taken;
    }

    /// <summary>Reads a vector whose length has this size.</summary>
    public ReadOnlySpan<byte> Vector(int lengthSize)
    {
        int length = 0;
        foreach (byte part in Bytes(lengthSize))
        {
            length = (length << 8) | part;
        }

        return Bytes(length);
    }

    /// <summary>Returns the rest as numbers of two bytes in hexadecimal digits, in order.</summary>
    public string Numbers()
    {
        List<string> all = [];
        while (!IsEmpty)
        {
            all.Add($"{Number():X4}");
        }

        return string.Join(' ', all);
    }

    public readonly string Hex() => Convert.ToHexString(_rest);
}

using System.Buffers.Binary;

namespace KernelTls.Bench;

/// <summary>
/// Counts TLS records in one direction of a connection, beginning at a record boundary (RFC 8446, section 5.1).
/// </summary>
internal sealed class TlsRecordCounter
{
    private const int HeaderSize = 5;
    private const int LengthOffset = 3;
    private const byte FirstContentType = 20;
    private const byte LastContentType = 23;
    private const byte MajorVersion = 3;

    private readonly byte[] _header = new byte[HeaderSize];
    private int _headerFilled;
    private int _bodyLeft;

    /// <summary>
    /// Returns the number of records that begin in these bytes, which follow the bytes of the previous call.
    /// </summary>
    /// <exception cref="BenchFailedException">The bytes are not TLS records.</exception>
    public int Add(ReadOnlySpan<byte> bytes)
    {
        int records = 0;
        while (bytes.Length > 0)
        {
            int body = Math.Min(_bodyLeft, bytes.Length);
            _bodyLeft -= body;
            bytes = bytes[body..];
            int header = Math.Min(HeaderSize - _headerFilled, bytes.Length);
            bytes[..header].CopyTo(_header.AsSpan(_headerFilled));
            _headerFilled += header;
            bytes = bytes[header..];
            if (_headerFilled == HeaderSize)
            {
                if (_header[0] is < FirstContentType or > LastContentType || _header[1] != MajorVersion)
                {
                    throw new BenchFailedException($"what was sent is no TLS record: {Convert.ToHexString(_header)}");
                }

                records++;
                _headerFilled = 0;
                _bodyLeft = BinaryPrimitives.ReadUInt16BigEndian(_header.AsSpan(LengthOffset));
            }
        }

        return records;
    }
}

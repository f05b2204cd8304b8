using System.Buffers.Binary;

namespace KernelTls.Tests;

/// <summary>
/// Computes the lengths of the TLS records in a stream of bytes, without their headers (RFC 8446, section 5.1).
/// </summary>
internal sealed class RecordLengths
{
    private const int HeaderSize = 5;
    private readonly List<int> _begun = [];
    private readonly byte[] _header = new byte[HeaderSize];
    private int _headerSize;
    private int _bodyLeft;

    /// <summary>Gets the lengths of the records begun so far. Thread-safe.</summary>
    public int[] Begun
    {
        get
        {
            lock (_begun)
            {
                return [.. _begun];
            }
        }
    }

    /// <summary>Processes the next bytes.</summary>
    public void Note(ReadOnlySpan<byte> bytes)
    {
        while (!bytes.IsEmpty)
        {
            if (_bodyLeft > 0)
            {
                int body = Math.Min(_bodyLeft, bytes.Length);
                _bodyLeft -= body;
                bytes = bytes[body..];
                continue;
            }

            _header[_headerSize++] = bytes[0];
            bytes = bytes[1..];
            if (_headerSize == HeaderSize)
            {
                _headerSize = 0;
                _bodyLeft = BinaryPrimitives.ReadUInt16BigEndian(_header.AsSpan(3));
                lock (_begun)
                {
                    _begun.Add(_bodyLeft);
                }
            }
        }
    }
}

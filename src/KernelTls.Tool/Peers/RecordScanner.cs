using System.Buffers.Binary;
using System.Text;

namespace KernelTls.Tool.Peers;

/// <summary>
/// Finds the records in one direction of a TLS connection (RFC 8446, section 5.1) from the bytes that pass. One thread feeds it;
/// <see cref="Records"/> may be read from any.
/// </summary>
internal sealed class RecordScanner
{
    private const int HeaderLength = 5;
    private const int LongestRecord = (1 << 14) + 2048;
    private const int FirstBytesKept = 24;

    private readonly byte[] _header = new byte[HeaderLength];
    private readonly List<RecordHeader> _records = [];
    private readonly List<byte> _first = [];
    private int _headerFilled;
    private int _bodyLeft;

    /// <summary>Bytes that have passed.</summary>
    public long Total { get; private set; }

    /// <summary>Everything until now was records.</summary>
    public bool IsTls { get; private set; } = true;

    /// <summary>How many bytes are missing to the end of what is being received, a header or a body: never over a record's end.</summary>
    public int Missing => !IsTls ? int.MaxValue : _bodyLeft > 0 ? _bodyLeft : HeaderLength - _headerFilled;

    /// <summary>The records whose last byte has passed.</summary>
    public IReadOnlyList<RecordHeader> Records
    {
        get
        {
            lock (_records)
            {
                return [.. _records];
            }
        }
    }

    /// <summary>How it began, as text for people.</summary>
    public string FirstBytes => $"'{Encoding.Latin1.GetString([.. _first]).ReplaceLineEndings(" ")}'";

    public void Push(ReadOnlySpan<byte> bytes)
    {
        Total += bytes.Length;
        _first.AddRange(bytes[..Math.Min(bytes.Length, FirstBytesKept - _first.Count)]);
        while (IsTls && !bytes.IsEmpty)
        {
            int taken = Math.Min(bytes.Length, Missing);
            if (_bodyLeft == 0)
            {
                bytes[..taken].CopyTo(_header.AsSpan(_headerFilled));
                _headerFilled += taken;
                BeginBody();
            }
            else
            {
                _bodyLeft -= taken;
                if (_bodyLeft == 0)
                {
                    EndRecord();
                }
            }

            bytes = bytes[taken..];
        }
    }

    private void BeginBody()
    {
        const int FirstType = 20, LastType = 24, Major = 3;
        if (_headerFilled < HeaderLength)
        {
            return;
        }

        _bodyLeft = BinaryPrimitives.ReadUInt16BigEndian(_header.AsSpan(3));
        IsTls = _header[0] is >= FirstType and <= LastType && _header[1] == Major && _bodyLeft <= LongestRecord;
        if (IsTls && _bodyLeft == 0)
        {
            EndRecord();
        }
    }

    private void EndRecord()
    {
        lock (_records)
        {
            _records.Add(new RecordHeader(_header[0], BinaryPrimitives.ReadUInt16BigEndian(_header.AsSpan(3))));
        }

        _headerFilled = 0;
    }

    /// <summary>A record, as seen from outside.</summary>
    /// <param name="Type">The outer type: 22 handshake, 23 application data (TLS 1.3: anything encrypted).</param>
    /// <param name="Length">Bytes behind the header.</param>
    internal readonly record struct RecordHeader(byte Type, int Length);
}

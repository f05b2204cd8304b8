using System.Buffers.Binary;
using System.Text;

namespace KernelTls.Tool.Peers;

/// <summary>
/// Finds the records in one direction of a TLS connection (RFC 8446, section 5.1). One thread adds data; any thread may
/// read <see cref="Records"/>.
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

    /// <summary>Gets the number of bytes scanned.</summary>
    public long Total { get; private set; }

    /// <summary>Gets a value that indicates whether all data so far consists of records.</summary>
    public bool IsTls { get; private set; } = true;

    /// <summary>
    /// Gets the number of bytes up to the end of the current header or body. It never extends beyond a record.
    /// </summary>
    public int Missing => !IsTls ? int.MaxValue : _bodyLeft > 0 ? _bodyLeft : HeaderLength - _headerFilled;

    /// <summary>Gets the complete records.</summary>
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

    /// <summary>Gets the first bytes as text.</summary>
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

    /// <summary>Describes a record, as visible on the wire.</summary>
    /// <param name="Type">
    /// The outer type: 22 for handshake, 23 for application data (in TLS 1.3, anything encrypted).
    /// </param>
    /// <param name="Length">The number of bytes after the header.</param>
    internal readonly record struct RecordHeader(byte Type, int Length);
}

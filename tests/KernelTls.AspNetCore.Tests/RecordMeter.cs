using System.Buffers.Binary;
using System.Net.Sockets;

namespace KernelTls.AspNetCore.Tests;

/// <summary>Under a client's SslStream: notes the length of each TLS record that the server sends (RFC 8446, section 5.1).</summary>
internal sealed class RecordMeter(Socket socket) : NetworkStream(socket, ownsSocket: true)
{
    private const int HeaderSize = 5;
    private readonly byte[] _header = new byte[HeaderSize];
    private int _headerSize;
    private int _bodyLeft;

    /// <summary>Lengths of the records begun so far, without their headers.</summary>
    public List<int> Records { get; } = [];

    public override async ValueTask<int> ReadAsync(Memory<byte> buffer, CancellationToken cancellationToken = default)
    {
        int read = await base.ReadAsync(buffer, cancellationToken);
        Note(buffer.Span[..read]);
        return read;
    }

    private void Note(ReadOnlySpan<byte> bytes)
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
                Records.Add(_bodyLeft);
            }
        }
    }
}

using System.Buffers.Binary;

namespace KernelTls.Bench;

/// <summary>Counts the packets of one server's connections. It tracks each direction from its first packet.</summary>
internal sealed class TcpTraffic(int port, bool hasRecords)
{
    private const int Tcp = 6;
    private const int LeastIpHeader = 20;
    private const int LeastTcpHeader = 20;
    private const int SynFlag = 0x02;

    private readonly Dictionary<(ushort Source, ushort Destination), Direction> _directions = [];

    /// <summary>Gets the number of TCP segments with data, excluding retransmissions.</summary>
    public int Segments { get; private set; }

    /// <summary>Gets the number of TLS records that began.</summary>
    public int Records { get; private set; }

    /// <param name="packet">The packet, beginning with its IP header. Packets of other connections are ignored.</param>
    /// <exception cref="BenchFailedException">Data is missing, or it is not TLS.</exception>
    public void Add(ReadOnlySpan<byte> packet)
    {
        if (packet.Length < LeastIpHeader || packet[0] >> 4 != 4 || packet[9] != Tcp)
        {
            return;
        }

        ReadOnlySpan<byte> tcp = packet[((packet[0] & 0xF) * 4)..BinaryPrimitives.ReadUInt16BigEndian(packet[2..])];
        ushort source = BinaryPrimitives.ReadUInt16BigEndian(tcp);
        ushort destination = BinaryPrimitives.ReadUInt16BigEndian(tcp[2..]);
        if (source != port && destination != port)
        {
            return;
        }

        uint sequence = BinaryPrimitives.ReadUInt32BigEndian(tcp[4..]);
        ReadOnlySpan<byte> data = tcp[Math.Max(LeastTcpHeader, (tcp[12] >> 4) * 4)..];
        if ((tcp[13] & SynFlag) != 0)
        {
            _directions[(source, destination)] = new Direction(sequence + 1);
        }
        else if (data.Length > 0)
        {
            if (!_directions.TryGetValue((source, destination), out Direction? direction))
            {
                _directions[(source, destination)] = direction = new Direction(sequence);
            }

            Add(direction, sequence, data);
        }
    }

    private void Add(Direction direction, uint sequence, ReadOnlySpan<byte> data)
    {
        int sentBefore = (int)(direction.Next - sequence);
        if (sentBefore < 0)
        {
            throw new BenchFailedException($"{-sentBefore} bytes of a connection were not seen");
        }

        if (sentBefore < data.Length)
        {
            Segments++;
            Records += hasRecords ? direction.Records.Add(data[sentBefore..]) : 0;
            direction.Next = sequence + (uint)data.Length;
        }
    }

    /// <param name="next">The sequence number of the next byte.</param>
    private sealed class Direction(uint next)
    {
        public uint Next { get; set; } = next;

        public TlsRecordCounter Records { get; } = new();
    }
}

using System.Buffers.Binary;

namespace KernelTls.Bench.Tests;

public class TcpTrafficTests
{
    private const int Port = 4433;
    private const int ClientPort = 50_000;
    private const int Syn = 2;
    private const int Ack = 16;

    private static readonly byte[] s_record = [23, 3, 3, 0, 4, 1, 2, 3, 4];

    [Fact]
    public void Records_are_counted_wherever_segments_end()
    {
        byte[] stream = [.. s_record, .. s_record, 22, 3, 1, 0, 0, .. s_record];
        for (int size = 1; size <= stream.Length; size++)
        {
            TcpTraffic traffic = new(Port, hasRecords: true);
            uint sequence = uint.MaxValue - 3;
            foreach (byte[] part in stream.Chunk(size))
            {
                traffic.Add(Packet(ClientPort, Port, sequence, part));
                sequence += (uint)part.Length;
            }

            Assert.Equal(4, traffic.Records);
            Assert.Equal((stream.Length + size - 1) / size, traffic.Segments);
        }
    }

    [Fact]
    public void Directions_and_connections_are_kept_apart()
    {
        TcpTraffic traffic = new(Port, hasRecords: true);
        traffic.Add(Packet(ClientPort, Port, 1, s_record[..6]));
        traffic.Add(Packet(Port, ClientPort, 900, s_record));
        traffic.Add(Packet(ClientPort + 1, Port, 5, s_record));
        traffic.Add(Packet(ClientPort, Port, 7, s_record[6..]));
        Assert.Equal((4, 3), (traffic.Segments, traffic.Records));
    }

    [Fact]
    public void A_port_that_is_used_again_is_a_connection_of_its_own()
    {
        TcpTraffic traffic = new(Port, hasRecords: true);
        traffic.Add(Packet(ClientPort, Port, 1, s_record[..6]));
        traffic.Add(Packet(ClientPort, Port, 5000, [], Syn));
        traffic.Add(Packet(ClientPort, Port, 5001, s_record));
        Assert.Equal((2, 2), (traffic.Segments, traffic.Records));
    }

    [Fact]
    public void What_is_sent_again_or_empty_or_of_others_is_not_counted()
    {
        TcpTraffic traffic = new(Port, hasRecords: true);
        traffic.Add(Packet(ClientPort, Port, 1, s_record));
        traffic.Add(Packet(ClientPort, Port, 1, s_record));
        traffic.Add(Packet(ClientPort, Port, 10, []));
        traffic.Add(Packet(ClientPort, Port + 1, 1, s_record));
        traffic.Add([0x45, 0, 0]);
        Assert.Equal((1, 1), (traffic.Segments, traffic.Records));

        // A retransmission with more data after it.
        traffic.Add(Packet(ClientPort, Port, 1, [.. s_record, .. s_record]));
        Assert.Equal((2, 2), (traffic.Segments, traffic.Records));
    }

    [Fact]
    public void Without_TLS_there_are_segments_alone()
    {
        TcpTraffic traffic = new(Port, hasRecords: false);
        traffic.Add(Packet(ClientPort, Port, 1, "GET / HTTP/1.1"u8.ToArray()));
        Assert.Equal((1, 0), (traffic.Segments, traffic.Records));
    }

    [Fact]
    public void What_is_missing_or_no_TLS_is_refused()
    {
        TcpTraffic traffic = new(Port, hasRecords: true);
        Assert.Throws<BenchFailedException>(() => traffic.Add(Packet(ClientPort, Port, 1, "GET / HTTP/1.1"u8.ToArray())));
        traffic.Add(Packet(Port, ClientPort, 1, s_record));
        BenchFailedException missing = Assert.Throws<BenchFailedException>(() => traffic.Add(Packet(Port, ClientPort, 13, s_record)));
        Assert.Equal("3 bytes of a connection were not seen", missing.Message);
    }

    /// <summary>Returns an IPv4 packet as captured by a tap, after the link's header.</summary>
    private static byte[] Packet(int source, int destination, uint sequence, byte[] data, byte flags = Ack)
    {
        byte[] packet = new byte[40 + data.Length];
        packet[0] = 0x45;
        packet[9] = 6;
        BinaryPrimitives.WriteUInt16BigEndian(packet.AsSpan(2), (ushort)packet.Length);
        BinaryPrimitives.WriteUInt16BigEndian(packet.AsSpan(20), (ushort)source);
        BinaryPrimitives.WriteUInt16BigEndian(packet.AsSpan(22), (ushort)destination);
        BinaryPrimitives.WriteUInt32BigEndian(packet.AsSpan(24), sequence);
        packet[32] = 0x50;
        packet[33] = flags;
        data.CopyTo(packet, 40);
        return packet;
    }
}

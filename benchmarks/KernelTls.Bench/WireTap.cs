using System.Buffers.Binary;
using System.Net.Sockets;

namespace KernelTls.Bench;

/// <summary>
/// Counts the data that a server and its clients send over loopback: TCP segments with data and the TLS records in
/// them. From its creation on, it receives a copy of each packet (packet(7)), which it examines when it is read. It
/// requires root and an otherwise idle machine.
/// </summary>
internal sealed class WireTap : IDisposable
{
    private const int SolSocket = 1;
    private const int ReceiveBufferForce = 33;
    private const int SolPacket = 263;
    private const int Statistics = 6;
    private const int BufferSize = 512 * 1024 * 1024;
    private const int LargestPacket = 128 * 1024;

    // A tap for IPv4 receives only incoming packets. A tap for all protocols would also receive outgoing packets, which
    // are the same on loopback.
    private const int InternetProtocol = 0x0800;

    private readonly Socket _socket;
    private readonly TcpTraffic _traffic;

    private WireTap(Socket socket, TcpTraffic traffic)
    {
        _socket = socket;
        _traffic = traffic;
    }

    /// <param name="port">The port of the server.</param>
    /// <param name="hasRecords">Whether the connections carry TLS records.</param>
    /// <returns>The tap, or null if this process is not permitted to open one.</returns>
    public static WireTap? TryOpen(int port, bool hasRecords)
    {
        Socket socket;
        try
        {
            socket = new(AddressFamily.Packet, SocketType.Dgram, (ProtocolType)BinaryPrimitives.ReverseEndianness((ushort)InternetProtocol));
        }
        catch (SocketException e) when (e.SocketErrorCode is SocketError.AccessDenied or SocketError.OperationNotSupported
            or SocketError.AddressFamilyNotSupported)
        {
            return null;
        }

        socket.SetRawSocketOption(SolSocket, ReceiveBufferForce, BitConverter.GetBytes(BufferSize));
        return new WireTap(socket, new TcpTraffic(port, hasRecords));
    }

    /// <summary>Returns the traffic up to now.</summary>
    /// <exception cref="BenchFailedException">The kernel dropped packets, or the data is not TLS.</exception>
    public TcpTraffic Read()
    {
        byte[] packet = new byte[LargestPacket];
        while (_socket.Poll(TimeSpan.Zero, SelectMode.SelectRead))
        {
            _traffic.Add(packet.AsSpan(0, _socket.Receive(packet)));
        }

        // struct tpacket_stats holds the number of packets and the number of dropped packets.
        Span<byte> statistics = stackalloc byte[2 * sizeof(int)];
        _ = _socket.GetRawSocketOption(SolPacket, Statistics, statistics);
        return BitConverter.ToInt32(statistics[sizeof(int)..]) is var lost and not 0
            ? throw new BenchFailedException($"there was no room for {lost} packets of those that were to be counted")
            : _traffic;
    }

    public void Dispose() => _socket.Dispose();
}

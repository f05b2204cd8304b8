using System.Net.Sockets;

namespace KernelTls;

/// <summary>Reads the kernel's counters of one TCP connection (linux/tcp.h, struct tcp_info).</summary>
internal static class TcpInfo
{
    private const int SolTcp = 6;
    private const int Option = 11;
    private const int RetransmittedOffset = 100;
    private const int BytesReceivedOffset = 128;
    private const int BytesNotSentOffset = 144;
    private const int DataSegmentsSentOffset = 156;
    private const int BytesSentOffset = 200;
    private const int BytesRetransmittedOffset = 208;

    /// <summary>
    /// Returns the number of bytes that were written to the socket. Unlike the number of acknowledged bytes, it does not depend on
    /// when the peer's acknowledgments arrive.
    /// </summary>
    /// <exception cref="NotSupportedException">The kernel does not count these bytes (Linux before 4.19).</exception>
    public static long BytesWritten(Socket socket)
    {
        ReadOnlySpan<byte> info = Read(socket, stackalloc byte[BytesRetransmittedOffset + sizeof(long)]);
        return BitConverter.ToInt64(info[BytesSentOffset..]) - BitConverter.ToInt64(info[BytesRetransmittedOffset..])
            + BitConverter.ToUInt32(info[BytesNotSentOffset..]);
    }

    /// <summary>Returns the number of bytes that this end has received.</summary>
    /// <exception cref="NotSupportedException">The kernel does not count these bytes (Linux before 4.1).</exception>
    public static long BytesReceived(Socket socket) =>
        BitConverter.ToInt64(Read(socket, stackalloc byte[BytesReceivedOffset + sizeof(long)])[BytesReceivedOffset..]);

    /// <summary>Returns the number of segments with data that this end has sent, without those that it sent again.</summary>
    /// <exception cref="NotSupportedException">The kernel does not count these segments (Linux before 4.6).</exception>
    public static long DataSegmentsSent(Socket socket)
    {
        ReadOnlySpan<byte> info = Read(socket, stackalloc byte[DataSegmentsSentOffset + sizeof(uint)]);
        return (long)BitConverter.ToUInt32(info[DataSegmentsSentOffset..]) - BitConverter.ToUInt32(info[RetransmittedOffset..]);
    }

    private static ReadOnlySpan<byte> Read(Socket socket, Span<byte> info)
    {
        int length = socket.GetRawSocketOption(SolTcp, Option, info);
        return length >= info.Length ? info : throw new NotSupportedException("this kernel's TCP_INFO has no such count");
    }
}

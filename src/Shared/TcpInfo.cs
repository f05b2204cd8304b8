using System.Net.Sockets;

namespace KernelTls;

/// <summary>Reads the kernel's counters of one TCP connection (linux/tcp.h, struct tcp_info).</summary>
internal static class TcpInfo
{
    private const int SolTcp = 6;
    private const int Option = 11;
    private const int BytesAckedOffset = 120;
    private const int BytesReceivedOffset = 128;

    /// <summary>Returns the number of bytes that this end has sent and the peer has acknowledged.</summary>
    /// <exception cref="NotSupportedException">The kernel does not count bytes (Linux before 4.1).</exception>
    public static long BytesAcknowledged(Socket socket) => Read(socket, BytesAckedOffset);

    /// <summary>Returns the number of bytes that this end has received.</summary>
    /// <inheritdoc cref="BytesAcknowledged" path="/exception"/>
    public static long BytesReceived(Socket socket) => Read(socket, BytesReceivedOffset);

    private static long Read(Socket socket, int offset)
    {
        Span<byte> info = stackalloc byte[offset + sizeof(long)];
        int length = socket.GetRawSocketOption(SolTcp, Option, info);
        return length >= info.Length
            ? BitConverter.ToInt64(info[offset..])
            : throw new NotSupportedException("this kernel's TCP_INFO has no counts of bytes");
    }
}

using System.Net.Sockets;

namespace KernelTls.Handshake;

/// <summary>Whether a stream is a socket that OpenSSL and the kernel can be given.</summary>
internal static class SocketEligibility
{
    private const int SolTcp = 6;
    private const int TcpInfo = 11;
    private const int TcpUlp = 31;
    private const int TcpEstablished = 1;

    /// <summary>None, with the socket; otherwise why the stream stays with the base class.</summary>
    public static KtlsFallbackReason TryGetSocket(Stream inner, out Socket? socket)
    {
        // A subclass may have its own idea of reading and writing: only the class itself is known to be its socket.
        socket = inner.GetType() == typeof(NetworkStream) ? ((NetworkStream)inner).Socket : null;
        if (socket is null)
        {
            return KtlsFallbackReason.NotASocket;
        }

        if (!socket.Connected)
        {
            return KtlsFallbackReason.NotConnected;
        }

        bool isTcp = socket.SocketType == SocketType.Stream && socket.ProtocolType == ProtocolType.Tcp &&
            socket.AddressFamily is AddressFamily.InterNetwork or AddressFamily.InterNetworkV6;
        if (!isTcp)
        {
            return KtlsFallbackReason.NotTcp;
        }

        return HasUpperLayerProtocol(socket) ? KtlsFallbackReason.UlpInUse : KtlsFallbackReason.None;
    }

    /// <summary>
    /// Whether the TCP connection is not open both ways any more. The kernel takes "tls" only while it is
    /// (Documentation/networking/tls.rst, "Creating a TLS connection").
    /// </summary>
    public static bool HasPeerClosed(Socket socket)
    {
        // struct tcp_info begins with the state, one byte.
        Span<byte> info = stackalloc byte[1];
        return socket.GetRawSocketOption(SolTcp, TcpInfo, info) == info.Length && info[0] != TcpEstablished;
    }

    private static bool HasUpperLayerProtocol(Socket socket)
    {
        Span<byte> name = stackalloc byte[16];
        return socket.GetRawSocketOption(SolTcp, TcpUlp, name) > 0 && name[0] != 0;
    }
}

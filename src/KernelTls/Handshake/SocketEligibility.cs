using System.Net.Sockets;
using KernelTls.Interop;

namespace KernelTls.Handshake;

/// <summary>Whether a stream is a socket that OpenSSL and the kernel can be given.</summary>
internal static class SocketEligibility
{
    private const int SolTcp = 6;
    private const int TcpInfo = 11;
    private const int SolSocket = 1;
    private const int SoProtocol = 38;
    private const int MultipathTcp = 262;
    private const int TcpEstablished = 1;

    /// <summary>None, with the socket; otherwise why the stream stays with the base class.</summary>
    /// <param name="inner">The inner stream.</param>
    /// <param name="named">The socket that the application says is under it; <see langword="null"/> where it says nothing.</param>
    /// <param name="socket">The socket.</param>
    public static KtlsFallbackReason TryGetSocket(Stream inner, Socket? named, out Socket? socket)
    {
        // A subclass may have its own idea of reading and writing: only the class itself is known to be its socket.
        socket = named ?? (inner.GetType() == typeof(NetworkStream) ? ((NetworkStream)inner).Socket : null);
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
        return isTcp ? WhyNot(LayerOf(socket))
            : ProtocolOf(socket) == MultipathTcp ? KtlsFallbackReason.Mptcp
            : KtlsFallbackReason.NotTcp;
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

    /// <summary>
    /// Each of these replaces the socket's functions, as "tls" would: two that do so are not to be put on top of each other,
    /// also where the kernel lets them.
    /// </summary>
    private static KtlsFallbackReason WhyNot(SocketLayer layer) => layer switch
    {
        SocketLayer.UpperLayerProtocol => KtlsFallbackReason.UlpInUse,
        SocketLayer.Mptcp => KtlsFallbackReason.Mptcp,
        SocketLayer.Sockmap => KtlsFallbackReason.Sockmap,
        _ => KtlsFallbackReason.None,
    };

    private static unsafe SocketLayer LayerOf(Socket socket)
    {
        SocketLayer layer;

        // A socket that cannot be asked fails in the handshake, with its own error.
        return KtlsNative.KtlsNative_GetLayer(socket.SafeHandle, &layer) == 0 ? layer : SocketLayer.None;
    }

    private static int ProtocolOf(Socket socket)
    {
        Span<byte> protocol = stackalloc byte[sizeof(int)];
        return socket.GetRawSocketOption(SolSocket, SoProtocol, protocol) == protocol.Length
            ? BitConverter.ToInt32(protocol)
            : 0;
    }
}

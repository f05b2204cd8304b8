using System.Net.Sockets;
using KernelTls.Interop;

namespace KernelTls.Handshake;

/// <summary>Decides whether OpenSSL and the kernel can use the socket of a stream.</summary>
internal static class SocketEligibility
{
    private const int SolTcp = 6;
    private const int TcpInfo = 11;
    private const int SolSocket = 1;
    private const int SoProtocol = 38;
    private const int MultipathTcp = 262;
    private const int TcpEstablished = 1;

    /// <summary>Returns None and the socket, or the reason why the kernel cannot use it.</summary>
    /// <param name="inner">The inner stream.</param>
    /// <param name="named">The socket that the application named, or <see langword="null"/>.</param>
    /// <param name="socket">The socket.</param>
    /// <exception cref="InvalidOperationException">The kernel holds the keys of an earlier connection, so no other handshake is possible.</exception>
    public static KtlsFallbackReason TryGetSocket(Stream inner, Socket? named, out Socket? socket)
    {
        // Exactly NetworkStream: a subclass may override reading and writing.
        socket = named ?? (inner.GetType() == typeof(NetworkStream) ? ((NetworkStream)inner).Socket : null);
        if (socket is null)
        {
            return KtlsFallbackReason.NotSocketStream;
        }

        bool isTcp = socket.SocketType == SocketType.Stream && socket.ProtocolType == ProtocolType.Tcp &&
            socket.AddressFamily is AddressFamily.InterNetwork or AddressFamily.InterNetworkV6;
        KtlsFallbackReason reason = isTcp ? GetFallbackReason(LayerOf(socket))
            : ProtocolOf(socket) == MultipathTcp ? KtlsFallbackReason.Mptcp
            : KtlsFallbackReason.NotTcp;
        return socket.Connected ? reason : KtlsFallbackReason.NotConnected;
    }

    /// <summary>
    /// Returns the reason why OpenSSL cannot use such a socket either, or None. OpenSSL only sends and receives, as SslStream does, whatever
    /// has replaced the socket's functions.
    /// </summary>
    public static KtlsFallbackReason OpenSslReasonOf(KtlsFallbackReason reason) =>
        reason is KtlsFallbackReason.UlpInUse or KtlsFallbackReason.Mptcp or KtlsFallbackReason.Sockmap ? KtlsFallbackReason.None : reason;

    /// <summary>
    /// Returns whether the TCP connection is no longer established. The kernel accepts the upper layer protocol "tls"
    /// only in that state (Documentation/networking/tls.rst, "Creating a TLS connection").
    /// </summary>
    public static bool HasPeerClosed(Socket socket)
    {
        // struct tcp_info begins with the state, in one byte.
        Span<byte> info = stackalloc byte[1];
        return socket.GetRawSocketOption(SolTcp, TcpInfo, info) == info.Length && info[0] != TcpEstablished;
    }

    /// <summary>
    /// Returns the reason for a layer. Each layer replaces the socket's functions, as "tls" does. Two of them must not
    /// be stacked, even if the kernel permits it.
    /// </summary>
    private static KtlsFallbackReason GetFallbackReason(SocketLayer layer) => layer switch
    {
        SocketLayer.TlsKeys => throw new InvalidOperationException(
            "The socket has kernel TLS, which cannot be removed: what another handshake sends would be encrypted under the keys of the "
            + "earlier one. Use one TLS stream for each socket, or set KtlsOptions.AllowSocketReuse on the earlier stream."),
        SocketLayer.UpperLayerProtocol => KtlsFallbackReason.UlpInUse,
        SocketLayer.Mptcp => KtlsFallbackReason.Mptcp,
        SocketLayer.Sockmap => KtlsFallbackReason.Sockmap,
        _ => KtlsFallbackReason.None,
    };

    private static unsafe SocketLayer LayerOf(Socket socket)
    {
        SocketLayer layer;

        // If the socket cannot be queried, the handshake fails with the socket's own error.
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

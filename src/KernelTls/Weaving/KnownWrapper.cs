using System.Net.Sockets;
using System.Runtime.CompilerServices;

namespace KernelTls.Weaving;

/// <summary>
/// Knows the streams that libraries put between a socket and SslStream, whose source shows that they read nothing ahead, change
/// nothing, and receive from and send to one socket only. Their time limits are kept by <see cref="WovenSslStream{TAssembly}"/>; when
/// they are disposed, they close the socket themselves.
/// </summary>
internal static class KnownWrapper
{
    private const string SqlClient = "Microsoft.Data.SqlClient.ManagedSni.SniNetworkStream, Microsoft.Data.SqlClient";
    private const string MailKit = "MailKit.Net.NetworkStream, MailKit";
    private const string Grpc = "Grpc.Net.Client.Balancer.Internal.StreamWrapper, Grpc.Net.Client";

    /// <summary>Returns the socket under a stream that is known; null for any other.</summary>
    public static Socket? SocketOf(Stream stream)
    {
        Type type = stream.GetType();
        try
        {
            return $"{type.FullName}, {type.Assembly.GetName().Name}" switch
            {
                MailKit when type == Type.GetType(MailKit) => SocketOfMailKit(stream),
                AmqpTransport.StreamName when type == Type.GetType(AmqpTransport.StreamName) => AmqpTransport.SocketOf(stream),

                // A NetworkStream that lets one read and one write at a time pass, as the stream above it does, too.
                SqlClient when type == Type.GetType(SqlClient) => ((NetworkStream)stream).Socket,

                // The bytes that it read while the connection was idle are the first bytes of the stream.
                Grpc when type == Type.GetType(Grpc)
                    && InitialDataOfGrpc(stream) is null or { Count: 0 }
                    && InnerOfGrpc(stream) is { } inner && inner.GetType() == typeof(NetworkStream) => ((NetworkStream)inner).Socket,

                // Also a type of a known name that the accessors do not see: that of an assembly loaded for a plug-in.
                _ => null,
            };
        }
        catch (Exception e) when (e is MissingMemberException or TypeLoadException)
        {
            // Another version, whose behavior is not known.
            return null;
        }
    }

    [UnsafeAccessor(UnsafeAccessorKind.Method, Name = "get_Socket")]
    private static extern Socket SocketOfMailKit([UnsafeAccessorType(MailKit)] object stream);

    [UnsafeAccessor(UnsafeAccessorKind.Field, Name = "_inner")]
    private static extern ref Stream InnerOfGrpc([UnsafeAccessorType(Grpc)] object stream);

    [UnsafeAccessor(UnsafeAccessorKind.Field, Name = "_initialSocketData")]
    private static extern ref List<ReadOnlyMemory<byte>>? InitialDataOfGrpc([UnsafeAccessorType(Grpc)] object stream);
}

using System.Net.Sockets;
using System.Reflection;

namespace KernelTls.Weaving;

/// <summary>
/// Knows the stream that Microsoft.Azure.Amqp puts on its TCP transport. The transport receives only when it is read. It then may hold bytes,
/// if the application has set the size of its buffer: those after the header that asks for TLS.
/// </summary>
/// <remarks>
/// Uses reflection, because an accessor cannot return a field whose type it does not see. The names are literals, so that the trimmer keeps
/// the members.
/// </remarks>
internal static class AmqpTransport
{
    /// <summary>The name of the stream.</summary>
    public const string StreamName = "Microsoft.Azure.Amqp.Transport.TransportStream, Microsoft.Azure.Amqp";

    private const string TcpName = "Microsoft.Azure.Amqp.Transport.TcpTransport, Microsoft.Azure.Amqp";
    private const string ReceiverName = "Microsoft.Azure.Amqp.Transport.TcpTransport+ReadAsyncEventArgs, Microsoft.Azure.Amqp";
    private const BindingFlags Instance = BindingFlags.Instance | BindingFlags.NonPublic;

    private static readonly FieldInfo? s_transport = Type.GetType(StreamName)?.GetField("transport", Instance);
    private static readonly FieldInfo? s_socket = Type.GetType(TcpName)?.GetField("socket", Instance);
    private static readonly FieldInfo? s_receiver = Type.GetType(TcpName)?.GetField("receiveEventArgs", Instance);
    private static readonly FieldInfo? s_buffer = Type.GetType(ReceiverName)?.GetField("readBuffer", Instance);
    private static readonly PropertyInfo? s_length =
        Type.GetType("Microsoft.Azure.Amqp.ByteBuffer, Microsoft.Azure.Amqp")?.GetProperty("Length", typeof(int));

    /// <summary>Returns the socket under the stream; null if the transport is another one, or another version, or holds bytes.</summary>
    public static Socket? SocketOf(Stream stream)
    {
        if (s_socket is null || s_receiver is null || s_buffer is null || s_length is null || s_transport?.GetValue(stream) is not { } transport)
        {
            return null;
        }

        return transport.GetType() == s_socket.DeclaringType
            && s_receiver.GetValue(transport) is { } receiver
            && (s_buffer.GetValue(receiver) is not { } held || s_length.GetValue(held) is 0)
                ? s_socket.GetValue(transport) as Socket
                : null;
    }
}

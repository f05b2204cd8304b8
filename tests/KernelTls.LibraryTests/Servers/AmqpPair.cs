using System.Net.Sockets;
using System.Reflection;
using Microsoft.Azure.Amqp.Transport;

namespace KernelTls.LibraryTests.Servers;

/// <summary>
/// Gives Microsoft.Azure.Amqp sockets that are connected already. Its own listener looks up the machine's name, which the lab's cells do not have.
/// </summary>
internal static class AmqpPair
{
    /// <summary>Returns the library's transport on a socket.</summary>
    /// <param name="socket">The socket.</param>
    /// <param name="bufferSize">The size of its buffers, or -1 for the default.</param>
    public static TransportBase Tcp(Socket socket, int bufferSize)
    {
        TcpTransportSettings settings = new();
        if (bufferSize >= 0)
        {
            settings.ReceiveBufferSize = settings.SendBufferSize = bufferSize;
        }

        return (TransportBase)Make("TcpTransport", socket, settings);
    }

    /// <summary>Returns the stream that the library puts on a transport, below its SslStream.</summary>
    public static Stream StreamOn(TransportBase transport) => (Stream)Make("TransportStream", transport);

    private static object Make(string type, params object[] arguments) => Activator.CreateInstance(
        typeof(TransportBase).Assembly.GetType($"{typeof(TransportBase).Namespace}.{type}", throwOnError: true)!,
        BindingFlags.Instance | BindingFlags.Public,
        binder: null,
        arguments,
        culture: null)!;

    /// <summary>Has an initiator connect at once, by a transport that exists.</summary>
    internal sealed class Settings(TransportBase transport) : TransportSettings
    {
        public override TransportInitiator CreateInitiator() => new Initiator(transport);

        public override TransportListener CreateListener() => new Listener(transport);

        private sealed class Initiator(TransportBase transport) : TransportInitiator
        {
            public override bool ConnectAsync(TimeSpan timeout, TransportAsyncCallbackArgs callbackArgs)
            {
                callbackArgs.Transport = transport;
                callbackArgs.CompletedSynchronously = true;
                return false;
            }
        }
    }

    /// <summary>Accepts one transport, which exists.</summary>
    internal sealed class Listener(TransportBase transport) : TransportListener("accepted")
    {
        protected override void OnListen() =>
            OnTransportAccepted(new TransportAsyncCallbackArgs { Transport = transport, CompletedSynchronously = true });
    }
}

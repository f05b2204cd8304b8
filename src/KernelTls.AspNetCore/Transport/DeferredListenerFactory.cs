using System.Buffers;
using System.Net;
using Microsoft.AspNetCore.Connections;
using Microsoft.AspNetCore.Server.Kestrel.Transport.Sockets;
using Microsoft.Extensions.Logging;
using Microsoft.Extensions.Options;

namespace KernelTls.AspNetCore.Transport;

/// <summary>
/// Listens on IP endpoints as the default transport would with the same options. Leaves other endpoints, and all
/// endpoints if the server does not use kernel TLS, to the transport registered before.
/// </summary>
internal sealed class DeferredListenerFactory(
    KernelTlsServer server,
    IOptions<SocketTransportOptions> options,
    ILoggerFactory loggers,
    IMemoryPoolFactory<byte>? memory = null) : IConnectionListenerFactory, IConnectionListenerFactorySelector
{
    public bool CanBind(EndPoint endpoint) => endpoint is IPEndPoint && server.Listens;

    public ValueTask<IConnectionListener> BindAsync(EndPoint endpoint, CancellationToken cancellationToken = default)
    {
        ArgumentNullException.ThrowIfNull(endpoint);
        return ValueTask.FromResult<IConnectionListener>(new DeferredListener(
            endpoint, options.Value, memory, loggers, local => server.Report($"https://{local}", KtlsFallbackReason.EndpointNotFound)));
    }
}

using System.Buffers;
using System.Net;
using Microsoft.AspNetCore.Connections;
using Microsoft.AspNetCore.Server.Kestrel.Transport.Sockets;
using Microsoft.Extensions.Logging;
using Microsoft.Extensions.Options;

namespace KernelTls.AspNetCore.Transport;

/// <summary>
/// Listens on IP endpoints, as the stock transport would with the same options. Any other endpoint, and every one where the
/// server does without kernel TLS, is left to the transport registered before this one.
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

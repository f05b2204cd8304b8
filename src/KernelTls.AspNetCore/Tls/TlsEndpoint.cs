using KernelTls.AspNetCore.Internals;
using Microsoft.AspNetCore.Connections;
using Microsoft.Extensions.Logging;

namespace KernelTls.AspNetCore.Tls;

/// <summary>Describes an endpoint for its connections: how it uses kernel TLS, and where to report.</summary>
/// <param name="Name">Kestrel's name of the endpoint.</param>
/// <param name="Options">The options of the endpoint or the server.</param>
/// <param name="Server">The server.</param>
/// <param name="Metrics">Kestrel's metrics, or null.</param>
/// <param name="Logger">This package's logger.</param>
/// <param name="HttpsLogger">The logger with the category of Kestrel's HTTPS middleware.</param>
internal sealed record TlsEndpoint(
    string Name, KtlsOptions Options, KernelTlsServer Server, KestrelMetrics? Metrics, ILogger Logger, ILogger HttpsLogger)
{
    public HandshakeReport Report(ConnectionContext connection) => new(connection, Metrics, HttpsLogger);

    /// <inheritdoc cref="KernelTlsServer.Refuse"/>
    public void Refuse(KtlsFallbackReason reason) => Server.Refuse(Name, reason, Options);
}

using Microsoft.AspNetCore.Connections;
using Microsoft.Extensions.Logging;

namespace KernelTls.AspNetCore.Tls;

/// <summary>An endpoint as its connections know it: how it uses kernel TLS, and where to tell what becomes of them.</summary>
/// <param name="Name">As Kestrel names it.</param>
/// <param name="Options">Its own, or the server's.</param>
/// <param name="Server">The server.</param>
/// <param name="Metrics">Kestrel's; null: none.</param>
/// <param name="Logger">This package's.</param>
/// <param name="HttpsLogger">Under the stock middleware's name.</param>
internal sealed record ServedEndpoint(
    string Name, KtlsOptions Options, KernelTlsServer Server, object? Metrics, ILogger Logger, ILogger HttpsLogger)
{
    public HandshakeReport Report(ConnectionContext connection) => new(connection, Metrics, HttpsLogger);

    /// <inheritdoc cref="KernelTlsServer.Refuse"/>
    public void Refuse(KtlsFallbackReason reason) => Server.Refuse(Name, reason, Options);
}

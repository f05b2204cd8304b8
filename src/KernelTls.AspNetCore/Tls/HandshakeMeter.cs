using System.Diagnostics;
using System.Security.Authentication;
using Microsoft.AspNetCore.Connections;
using Microsoft.AspNetCore.Connections.Features;

namespace KernelTls.AspNetCore.Tls;

/// <summary>
/// Measures one handshake as the stock middleware does: kestrel.active_tls_handshakes, kestrel.tls_handshake.duration, and the
/// tags of kestrel.connection.duration.
/// </summary>
internal readonly struct HandshakeMeter
{
    private readonly object? _metrics;
    private readonly object? _context;
    private readonly long _start;

    /// <param name="metrics">Kestrel's; null: only the tags.</param>
    /// <param name="connection">The connection.</param>
    public HandshakeMeter(object? metrics, ConnectionContext connection)
    {
        _metrics = metrics;
        _start = Stopwatch.GetTimestamp();
        _context = metrics is null ? null : KestrelInternals.StartHandshake(metrics, connection);
    }

    public void Completed(ConnectionContext connection, SslProtocols protocol)
    {
        Stop(protocol, null);
        Tag(connection, "tls.protocol.version", protocol switch
        {
            SslProtocols.Tls13 => "1.3",
            SslProtocols.Tls12 => "1.2",
            _ => protocol.ToString(),
        });
    }

    public void Failed(ConnectionContext connection, Exception failure)
    {
        Stop(null, failure);
        Tag(connection, "error.type", "tls_handshake_failed");
    }

    private void Stop(SslProtocols? protocol, Exception? failure)
    {
        if (_context is not null)
        {
            KestrelInternals.StopHandshake(_metrics!, _context, _start, protocol, failure);
        }
    }

    private static void Tag(ConnectionContext connection, string name, string value) =>
        connection.Features.Get<IConnectionMetricsTagsFeature>()?.Tags.Add(new KeyValuePair<string, object?>(name, value));
}

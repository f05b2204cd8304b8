using System.Diagnostics;
using System.Net.Security;
using System.Security.Authentication;
using KernelTls.AspNetCore.Internals;
using KernelTls.Diagnostics;
using Microsoft.AspNetCore.Connections;
using Microsoft.AspNetCore.Connections.Features;
using Microsoft.Extensions.Logging;

namespace KernelTls.AspNetCore.Tls;

/// <summary>Reports one handshake as Kestrel's HTTPS middleware does.</summary>
/// <remarks>
/// <para>
/// It reports the metrics kestrel.active_tls_handshakes and kestrel.tls_handshake.duration, the tags of
/// kestrel.connection.duration, the events and counters of the event source Microsoft-AspNetCore-Server-Kestrel, and
/// log messages.
/// </para>
/// <para>
/// A handshake starts when its options are known. If it fails before, Kestrel's middleware reports only the end, so
/// that its counters of current handshakes fall below zero. Here each end has a start.
/// </para>
/// </remarks>
internal sealed class HandshakeReport
{
    private readonly ConnectionContext _connection;
    private readonly ILogger _log;
    private readonly KestrelMetrics.OfConnection? _metrics;
    private readonly long _begun = Stopwatch.GetTimestamp();
    private bool _started;

    /// <summary>Initializes a new instance of the <see cref="HandshakeReport"/> class.</summary>
    /// <param name="connection">The connection.</param>
    /// <param name="metrics">Kestrel's metrics, or null to report only the tags.</param>
    /// <param name="log">The logger with the category of Kestrel's HTTPS middleware.</param>
    public HandshakeReport(ConnectionContext connection, KestrelMetrics? metrics, ILogger log)
    {
        _connection = connection;
        _log = log;
        _metrics = metrics?.For(connection);
    }

    public void Started(SslServerAuthenticationOptions options)
    {
        _started = true;
        KestrelEvents.ReportStart(_connection, options);
        _metrics?.StartHandshake();
    }

    public void Completed(KestrelTlsFeature tlsFeature, SslProtocols protocol)
    {
        Stop(tlsFeature, protocol, failure: null);
        _log.HttpsConnectionEstablished(_connection.ConnectionId, protocol);
        Tag("tls.protocol.version", KtlsMeter.VersionOf(protocol));
    }

    public void Failed(Exception failure)
    {
        if (!_started)
        {
            Started(new SslServerAuthenticationOptions());
        }

        StopFailed(failure);
        if (failure is OperationCanceledException)
        {
            _log.AuthenticationTimedOut();
        }
        else
        {
            _log.AuthenticationFailed(failure);
        }

        Tag("error.type", "tls_handshake_failed");
    }

    /// <summary>Ends a handshake that has started, after the application failed. Kestrel logs that failure.</summary>
    public void Abandoned(Exception failure)
    {
        if (_started)
        {
            StopFailed(failure);
        }
    }

    private void StopFailed(Exception failure)
    {
        KestrelEvents.ReportFailed(_connection);
        Stop(tlsFeature: null, protocol: null, failure);
    }

    private void Stop(KestrelTlsFeature? tlsFeature, SslProtocols? protocol, Exception? failure)
    {
        KestrelEvents.ReportStop(_connection, tlsFeature);
        _metrics?.StopHandshake(_begun, protocol, failure);
    }

    private void Tag(string name, string value) =>
        _connection.Features.Get<IConnectionMetricsTagsFeature>()?.Tags.Add(new KeyValuePair<string, object?>(name, value));
}

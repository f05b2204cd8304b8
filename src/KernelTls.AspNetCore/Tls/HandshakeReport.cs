using System.Diagnostics;
using System.Net.Security;
using System.Security.Authentication;
using KernelTls.Diagnostics;
using Microsoft.AspNetCore.Connections;
using Microsoft.AspNetCore.Connections.Features;
using Microsoft.Extensions.Logging;

namespace KernelTls.AspNetCore.Tls;

/// <summary>
/// Tells of one handshake what the stock middleware tells: the metrics kestrel.active_tls_handshakes and
/// kestrel.tls_handshake.duration and the tags of kestrel.connection.duration; the events and counters of the event source
/// Microsoft-AspNetCore-Server-Kestrel; the log.
/// </summary>
/// <remarks>
/// A handshake starts when its options are known. Of one that fails before, the stock middleware tells the end alone, so that
/// its counters of handshakes under way fall below zero; here each end has its start.
/// </remarks>
internal sealed class HandshakeReport
{
    private readonly ConnectionContext _connection;
    private readonly ILogger _log;
    private readonly object? _metrics;
    private readonly object? _context;
    private readonly long _begun = Stopwatch.GetTimestamp();
    private bool _started;

    /// <param name="connection">The connection.</param>
    /// <param name="metrics">Kestrel's; null: only the tags.</param>
    /// <param name="log">Under the stock middleware's name.</param>
    public HandshakeReport(ConnectionContext connection, object? metrics, ILogger log)
    {
        _connection = connection;
        _log = log;
        _context = metrics is null ? null : KestrelInternals.MetricsContextOf(connection);
        _metrics = _context is null ? null : metrics;
    }

    public void Started(SslServerAuthenticationOptions options)
    {
        _started = true;
        if (KestrelInternals.Events is { } events)
        {
            KestrelInternals.TellStart(events, _connection, options);
        }

        if (_metrics is not null)
        {
            KestrelInternals.StartHandshake(_metrics, _context!);
        }
    }

    public void Completed(object tlsFeature, SslProtocols protocol)
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

    /// <summary>The application has failed, which Kestrel logs: a handshake that has started ends all the same.</summary>
    public void Abandoned(Exception failure)
    {
        if (_started)
        {
            StopFailed(failure);
        }
    }

    private void StopFailed(Exception failure)
    {
        if (KestrelInternals.Events is { } events)
        {
            KestrelInternals.TellFailed(events, _connection);
        }

        Stop(tlsFeature: null, protocol: null, failure);
    }

    private void Stop(object? tlsFeature, SslProtocols? protocol, Exception? failure)
    {
        if (KestrelInternals.Events is { } events)
        {
            KestrelInternals.TellStop(events, _connection, tlsFeature);
        }

        if (_metrics is not null)
        {
            KestrelInternals.StopHandshake(_metrics, _context!, _begun, protocol, failure);
        }
    }

    private void Tag(string name, string value) =>
        _connection.Features.Get<IConnectionMetricsTagsFeature>()?.Tags.Add(new KeyValuePair<string, object?>(name, value));
}

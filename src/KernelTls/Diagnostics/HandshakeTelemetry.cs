using System.Diagnostics;
using KernelTls.Interop;
using KernelTls.IO;

namespace KernelTls.Diagnostics;

/// <summary>
/// What one handshake on OpenSSL tells whoever listens: an activity with the stock stream's source, name and tags, so that a
/// trace looks the same with kernel TLS; the events of the runtime's own source; its duration; events of this library.
/// </summary>
internal readonly struct HandshakeTelemetry
{
    private static readonly ActivitySource s_source = new("Experimental.System.Net.Security");

    private readonly Activity? _activity;
    private readonly bool _isServer;
    private readonly bool _toldStart;
    private readonly long _started;

    private HandshakeTelemetry(bool isServer, string targetHost)
    {
        _isServer = isServer;
        _started = Stopwatch.GetTimestamp();
        _toldStart = RuntimeTelemetry.IsEnabled;
        if (_toldStart)
        {
            RuntimeTelemetry.Started(isServer, targetHost);
        }

        _activity = s_source.StartActivity("Experimental.System.Net.Security.TlsHandshake");
        if (_activity is { } activity)
        {
            activity.DisplayName = isServer ? "TLS server handshake" : $"TLS client handshake {targetHost}";
            if (activity.IsAllDataRequested && !isServer)
            {
                activity.SetTag("server.address", targetHost);
            }
        }
    }

    public static HandshakeTelemetry Start(bool isServer, string targetHost) => new(isServer, targetHost);

    public void Completed(TlsSession session)
    {
        if (_activity is { } activity)
        {
            if (activity.IsAllDataRequested)
            {
                activity.SetTag("tls.protocol.name", "tls");
                activity.SetTag("tls.protocol.version", KtlsMeter.VersionOf(session.Protocol));
            }

            activity.Dispose();
        }

        if (_toldStart)
        {
            RuntimeTelemetry.Completed(session.Protocol, _started);
            session.NoteToldOpen();
        }

        KtlsMeter.HandshakeCompleted(Stopwatch.GetElapsedTime(_started), session);
        KtlsEventSource.Log.HandshakeCompleted(session);
    }

    public void Failed(Exception failure)
    {
        if (_activity is { } activity)
        {
            if (activity.IsAllDataRequested)
            {
                activity.SetStatus(ActivityStatusCode.Error);
                activity.SetTag("error.type", failure.GetType().FullName);
            }

            activity.Dispose();
        }

        if (_toldStart)
        {
            RuntimeTelemetry.Failed(_isServer, _started, failure);
        }

        KtlsMeter.HandshakeFailed(Stopwatch.GetElapsedTime(_started), _isServer, failure);
        KtlsEventSource.Log.HandshakeFailed(_isServer, failure);
    }
}

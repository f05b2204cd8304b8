using System.Diagnostics;
using KernelTls.Interop;
using KernelTls.IO;

namespace KernelTls.Diagnostics;

/// <summary>Reports one handshake on OpenSSL to listeners.</summary>
/// <remarks>
/// It reports an activity with SslStream's source, name and tags, so that traces look the same with kernel TLS; the
/// events of the runtime's event source; the duration; and the events of this library.
/// </remarks>
internal readonly struct HandshakeTelemetry
{
    private static readonly ActivitySource s_source = new("Experimental.System.Net.Security");

    private readonly Activity? _activity;
    private readonly bool _isServer;
    private readonly bool _reportedStart;
    private readonly long _started;

    private HandshakeTelemetry(bool isServer, string targetHost)
    {
        _isServer = isServer;
        _started = Stopwatch.GetTimestamp();
        _reportedStart = RuntimeTelemetry.IsEnabled;
        if (_reportedStart)
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

        if (_reportedStart)
        {
            RuntimeTelemetry.Completed(session.Protocol, _started);
            session.MarkReportedOpen();
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

        if (_reportedStart)
        {
            RuntimeTelemetry.Failed(_isServer, _started, failure);
        }

        KtlsMeter.HandshakeFailed(Stopwatch.GetElapsedTime(_started), _isServer, failure);
        KtlsEventSource.Log.HandshakeFailed(_isServer, failure);
    }
}

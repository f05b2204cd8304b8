using System.Diagnostics;
using KernelTls.IO;

namespace KernelTls.Diagnostics;

/// <summary>
/// What one handshake on OpenSSL tells whoever listens: an activity with the stock stream's source, name and tags, so that a
/// trace looks the same with kernel TLS; its duration; events.
/// </summary>
internal readonly struct HandshakeTelemetry
{
    private static readonly ActivitySource s_source = new("Experimental.System.Net.Security");

    private readonly Activity? _activity;
    private readonly bool _isServer;
    private readonly long _started;

    private HandshakeTelemetry(bool isServer, string targetHost)
    {
        _isServer = isServer;
        _started = Stopwatch.GetTimestamp();
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

        KtlsMeter.HandshakeFailed(Stopwatch.GetElapsedTime(_started), _isServer, failure);
        KtlsEventSource.Log.HandshakeFailed(_isServer, failure);
    }
}

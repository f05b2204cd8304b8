using System.Diagnostics.Metrics;
using System.Security.Authentication;
using KernelTls.IO;

namespace KernelTls.Diagnostics;

/// <summary>Implements the meter <c>KernelTls</c>.</summary>
/// <remarks>
/// Names and attributes follow OpenTelemetry's conventions for TLS; additional ones are under <c>kernel_tls</c>.
/// Without a listener a measurement costs one flag test.
/// </remarks>
internal static class KtlsMeter
{
    public const string Name = "KernelTls";

    private const string Role = "kernel_tls.role";
    private const string Send = "kernel_tls.send";
    private const string Receive = "kernel_tls.receive";
    private const string ProtocolVersion = "tls.protocol.version";
    private const string Resumed = "tls.resumed";
    private const string ErrorType = "error.type";

    private static readonly Meter s_meter = new(Name);

    private static readonly Histogram<double> s_handshakeDuration = s_meter.CreateHistogram(
        "kernel_tls.handshake.duration",
        "s",
        "Duration of the handshakes that this library performed.",
        advice: new InstrumentAdvice<double>
        {
            HistogramBucketBoundaries = [0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10],
        });

    private static readonly UpDownCounter<long> s_connections = s_meter.CreateUpDownCounter<long>(
        "kernel_tls.connections", "{connection}", "Number of open connections, by the data path of each direction.");

    private static readonly Counter<long> s_fallbacks = s_meter.CreateCounter<long>(
        "kernel_tls.fallbacks", "{direction}", "Number of directions of connections that are not in the kernel although kernel TLS was requested.");

    private static readonly Counter<long> s_keyUpdates = s_meter.CreateCounter<long>(
        "kernel_tls.key_updates", "{key_update}", "Number of changes of this end's sending key (RFC 8446, section 4.6.3).");

    private static readonly Counter<long> s_messages = s_meter.CreateCounter<long>(
        "kernel_tls.post_handshake_messages", "{message}", "Number of tickets, KeyUpdates and requests that peers sent after the handshake.");

    private static readonly Counter<long> s_failures = s_meter.CreateCounter<long>(
        "kernel_tls.connection.failures", "{connection}", "Number of connections that failed after the handshake.");

    private static readonly Counter<long> s_ends = s_meter.CreateCounter<long>(
        "kernel_tls.connection.ends_without_close_notify", "{connection}", "Number of connections whose peer ended them without close_notify.");

    public static void HandshakeCompleted(TimeSpan duration, TlsSession session)
    {
        bool isServer = session.Settings.IsServer;
        if (s_handshakeDuration.Enabled)
        {
            KtlsOffload offload = session.Offload;
            s_handshakeDuration.Record(
                duration.TotalSeconds,
                [
                    new(Role, RoleOf(isServer)), new(ProtocolVersion, VersionOf(session.Protocol)), new(Resumed, session.IsResumed),
                    new(Send, PathOf(offload.Send)), new(Receive, PathOf(offload.Receive)),
                ]);
        }

        Fallback(isServer, session.PlannedOffload);
    }

    public static void HandshakeFailed(TimeSpan duration, bool isServer, Exception failure)
    {
        if (s_handshakeDuration.Enabled)
        {
            s_handshakeDuration.Record(duration.TotalSeconds, [new(Role, RoleOf(isServer)), new(ErrorType, failure.GetType().FullName)]);
        }
    }

    /// <summary>
    /// Gets a value that indicates whether there is a listener. A connection that is not counted at its start must not
    /// be subtracted later.
    /// </summary>
    public static bool CountsConnections => s_connections.Enabled;

    /// <summary>Counts a connection that begins (1) or has ended (-1).</summary>
    public static void CountConnection(int change, bool isServer, SslProtocols protocol, in KtlsOffload offload) => s_connections.Add(
        change,
        [
            new(Role, RoleOf(isServer)), new(ProtocolVersion, VersionOf(protocol)),
            new(Send, PathOf(offload.Send)), new(Receive, PathOf(offload.Receive)),
        ]);

    /// <summary>Counts the fallbacks of a connection. Directions that were not requested are none.</summary>
    public static void Fallback(bool isServer, in KtlsOffload offload)
    {
        if (s_fallbacks.Enabled)
        {
            CountFallback(isServer, "send", offload.SendFallbackReason);
            CountFallback(isServer, "receive", offload.ReceiveFallbackReason);
        }
    }

    public static void KeyUpdated(KeyUpdateCause cause)
    {
        if (s_keyUpdates.Enabled)
        {
            s_keyUpdates.Add(1, new KeyValuePair<string, object?>("kernel_tls.cause", cause switch
            {
                KeyUpdateCause.Application => "application",
                KeyUpdateCause.Peer => "peer",
                _ => "record_limit",
            }));
        }
    }

    public static void Received(int messages) => s_messages.Add(messages);

    public static void ConnectionFailed(Exception failure)
    {
        if (s_failures.Enabled)
        {
            s_failures.Add(1, new KeyValuePair<string, object?>(ErrorType, failure.GetType().FullName));
        }
    }

    public static void EndedWithoutCloseNotify() => s_ends.Add(1);

    private static void CountFallback(bool isServer, string direction, KtlsFallbackReason reason)
    {
        if (!KtlsEventSource.IsChoice(reason))
        {
            s_fallbacks.Add(
                1, new(Role, RoleOf(isServer)), new("kernel_tls.direction", direction), new("kernel_tls.reason", reason.ToString()));
        }
    }

    private static string RoleOf(bool isServer) => isServer ? "server" : "client";

    /// <summary>Returns the version as in OpenTelemetry's tls.protocol.version.</summary>
    public static string VersionOf(SslProtocols protocol) => protocol switch
    {
        SslProtocols.Tls13 => "1.3",
        SslProtocols.Tls12 => "1.2",
#pragma warning disable SYSLIB0039 // OpenSSL's configuration or SslStream may allow them.
        SslProtocols.Tls11 => "1.1",
        SslProtocols.Tls => "1.0",
#pragma warning restore SYSLIB0039
        _ => protocol.ToString(),
    };

    private static string PathOf(KtlsDataPath path) => path switch
    {
        KtlsDataPath.Kernel => "kernel",
        KtlsDataPath.Hardware => "hardware",
        KtlsDataPath.OpenSsl => "openssl",
        _ => "managed",
    };
}

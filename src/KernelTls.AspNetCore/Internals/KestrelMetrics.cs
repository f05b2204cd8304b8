using System.Diagnostics;
using System.Runtime.CompilerServices;
using System.Security.Authentication;
using Microsoft.AspNetCore.Connections;
using Microsoft.AspNetCore.Connections.Features;

namespace KernelTls.AspNetCore.Internals;

/// <summary>Wraps Kestrel's metrics of handshakes.</summary>
internal readonly struct KestrelMetrics
{
    private const string TypeName =
        "Microsoft.AspNetCore.Server.Kestrel.Core.Internal.Infrastructure.KestrelMetrics, Microsoft.AspNetCore.Server.Kestrel.Core";

    private const string ContextName =
        "Microsoft.AspNetCore.Server.Kestrel.Core.Internal.Infrastructure.ConnectionMetricsContext, Microsoft.AspNetCore.Server.Kestrel.Core";

    private const string ConnectionName =
        "Microsoft.AspNetCore.Server.Kestrel.Core.Internal.Infrastructure.KestrelConnection, Microsoft.AspNetCore.Server.Kestrel.Core";

    private static readonly Type? s_type = Type.GetType(TypeName);
    private static readonly Type? s_connectionType = Type.GetType(ConnectionName);

    /// <summary>Whether the metrics are usable. If they are not, handshakes are not measured, and everything else works.</summary>
    private static readonly bool s_isUsable =
        s_type is not null
        && s_connectionType is not null
        && KestrelInternals.Exists(static () => GetContext(null!))
        && KestrelInternals.Exists(static () => TlsHandshakeStart(null!, null!))
        && KestrelInternals.Exists(static () => TlsHandshakeStop(null!, null!, 0, 0, null, null));

    private readonly object _metrics;

    private KestrelMetrics(object metrics) => _metrics = metrics;

    /// <summary>Returns Kestrel's metrics, or null if their members differ.</summary>
    public static KestrelMetrics? Of(IServiceProvider services) =>
        s_isUsable && services.GetService(s_type!) is { } metrics ? new KestrelMetrics(metrics) : null;

    /// <summary>Returns the metrics of one connection, or null if it is not Kestrel's connection.</summary>
    public OfConnection? For(ConnectionContext connection)
    {
        // Kestrel's connection implements this feature, among others.
        object? kestrel = connection.Features.Get<IConnectionHeartbeatFeature>();
        return kestrel is not null && s_connectionType!.IsInstanceOfType(kestrel) ? new OfConnection(_metrics, GetContext(kestrel)) : null;
    }

    [UnsafeAccessor(UnsafeAccessorKind.Method, Name = "get_MetricsContext")]
    [return: UnsafeAccessorType(ContextName)]
    private static extern object GetContext([UnsafeAccessorType(ConnectionName)] object connection);

    [UnsafeAccessor(UnsafeAccessorKind.Method, Name = "TlsHandshakeStart")]
    private static extern void TlsHandshakeStart(
        [UnsafeAccessorType(TypeName)] object metrics, [UnsafeAccessorType(ContextName)] object context);

    [UnsafeAccessor(UnsafeAccessorKind.Method, Name = "TlsHandshakeStop")]
    private static extern void TlsHandshakeStop(
        [UnsafeAccessorType(TypeName)] object metrics,
        [UnsafeAccessorType(ContextName)] object context,
        long startTimestamp,
        long currentTimestamp,
        SslProtocols? protocol,
        Exception? exception);

    /// <summary>Wraps the metrics of one connection.</summary>
    internal readonly struct OfConnection(object metrics, object context)
    {
        public void StartHandshake() => TlsHandshakeStart(metrics, context);

        public void StopHandshake(long startTimestamp, SslProtocols? protocol, Exception? failure) =>
            TlsHandshakeStop(metrics, context, startTimestamp, Stopwatch.GetTimestamp(), protocol, failure);
    }
}

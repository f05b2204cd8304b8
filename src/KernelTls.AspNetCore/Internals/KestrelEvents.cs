using System.Diagnostics.Tracing;
using System.Net.Security;
using System.Runtime.CompilerServices;
using Microsoft.AspNetCore.Connections;

namespace KernelTls.AspNetCore.Internals;

/// <summary>Reports handshakes by Kestrel's event source, or not at all if it does not exist or its members differ.</summary>
internal static class KestrelEvents
{
    private const string TypeName =
        "Microsoft.AspNetCore.Server.Kestrel.Core.Internal.Infrastructure.KestrelEventSource, Microsoft.AspNetCore.Server.Kestrel.Core";

    // Lazy: Kestrel creates it before its first connection, but after its options.
    private static readonly Lazy<EventSource?> s_source = new(Find);

    public static void ReportStart(ConnectionContext connection, SslServerAuthenticationOptions options)
    {
        if (s_source.Value is { } source)
        {
            TlsHandshakeStart(source, connection, options);
        }
    }

    /// <summary>Reports the end of a handshake.</summary>
    /// <param name="connection">The connection.</param>
    /// <param name="feature">The feature, or null if the handshake failed.</param>
    public static void ReportStop(ConnectionContext connection, KestrelTlsFeature? feature)
    {
        if (s_source.Value is { } source)
        {
            TlsHandshakeStop(source, connection, feature?.Value);
        }
    }

    public static void ReportFailed(ConnectionContext connection)
    {
        if (s_source.Value is { } source)
        {
            TlsHandshakeFailed(source, connection.ConnectionId);
        }
    }

    private static EventSource? Find() =>
        KestrelTlsFeature.MissingType.Length == 0
        && KestrelInternals.Exists(static () => TlsHandshakeStart(null!, null!, null!))
        && KestrelInternals.Exists(static () => TlsHandshakeStop(null!, null!, null))
        && KestrelInternals.Exists(static () => TlsHandshakeFailed(null!, ""))
            ? EventSource.GetSources().FirstOrDefault(s => s.GetType() == Type.GetType(TypeName))
            : null;

    [UnsafeAccessor(UnsafeAccessorKind.Method, Name = "TlsHandshakeStart")]
    private static extern void TlsHandshakeStart(
        [UnsafeAccessorType(TypeName)] object events, BaseConnectionContext connection, SslServerAuthenticationOptions options);

    [UnsafeAccessor(UnsafeAccessorKind.Method, Name = "TlsHandshakeStop")]
    private static extern void TlsHandshakeStop(
        [UnsafeAccessorType(TypeName)] object events,
        BaseConnectionContext connection,
        [UnsafeAccessorType(KestrelTlsFeature.TypeName)] object? feature);

    [UnsafeAccessor(UnsafeAccessorKind.Method, Name = "TlsHandshakeFailed")]
    private static extern void TlsHandshakeFailed([UnsafeAccessorType(TypeName)] object events, string connectionId);
}

using System.Diagnostics;
using System.Diagnostics.CodeAnalysis;
using System.Net.Security;
using System.Runtime.CompilerServices;
using System.Security.Authentication;
using Microsoft.AspNetCore.Connections;
using Microsoft.AspNetCore.Connections.Features;
using Microsoft.AspNetCore.Server.Kestrel.Core;
using Microsoft.AspNetCore.Server.Kestrel.Https;
using Microsoft.AspNetCore.Server.Kestrel.Transport.Sockets;

namespace KernelTls.AspNetCore;

/// <summary>
/// The only file that knows private members of ASP.NET Core. Each is tried once; <see cref="IsAvailable"/> is false where one
/// is missing, and then no endpoint leaves the stock TLS.
/// </summary>
/// <remarks>
/// They serve three ends: to stand directly in front of the stock TLS middleware of every endpoint, however that was made; to
/// serve it with that middleware's own options, which are complete: defaults, configuration and certificate applied; and to
/// measure handshakes in Kestrel's own metrics, which are done without where they are not as expected.
/// </remarks>
internal static class KestrelInternals
{
    private const string MiddlewareName =
        "Microsoft.AspNetCore.Server.Kestrel.Https.Internal.HttpsConnectionMiddleware, Microsoft.AspNetCore.Server.Kestrel.Core";

    private const string MetricsName =
        "Microsoft.AspNetCore.Server.Kestrel.Core.Internal.Infrastructure.KestrelMetrics, Microsoft.AspNetCore.Server.Kestrel.Core";

    private const string MetricsContextName =
        "Microsoft.AspNetCore.Server.Kestrel.Core.Internal.Infrastructure.ConnectionMetricsContext, Microsoft.AspNetCore.Server.Kestrel.Core";

    private const string ConnectionName =
        "Microsoft.AspNetCore.Server.Kestrel.Core.Internal.Infrastructure.KestrelConnection, Microsoft.AspNetCore.Server.Kestrel.Core";

    [DynamicallyAccessedMembers(
        DynamicallyAccessedMemberTypes.PublicConstructors | DynamicallyAccessedMemberTypes.NonPublicConstructors)]
    private static readonly Type? s_middlewareType = Type.GetType(MiddlewareName);

    private static readonly Type? s_metricsType = Type.GetType(MetricsName);
    private static readonly Type? s_connectionType = Type.GetType(ConnectionName);
    private static readonly bool s_hasMetrics = FindMetrics();

    public static bool IsAvailable => Missing.Length == 0;

    /// <summary>What is missing, for the log; empty where nothing is.</summary>
    public static string Missing { get; } = FindMissing();

    /// <summary>The stock TLS middleware, if that is what <paramref name="next"/> calls.</summary>
    public static object? HttpsMiddlewareOf(ConnectionDelegate next) =>
        next.Target is { } target && target.GetType() == s_middlewareType ? target : null;

    public static List<ListenOptions> EndpointsInCode(KestrelServerOptions server) => CodeBackedListenOptions(server);

    public static Action<ListenOptions> EndpointDefaultsOf(KestrelServerOptions server) => EndpointDefaults(server);

    public static List<Func<ConnectionDelegate, ConnectionDelegate>> MiddlewareOf(ListenOptions endpoint) => Middleware(endpoint);

    /// <summary>Null: the options are chosen for each connection.</summary>
    public static HttpsConnectionAdapterOptions? OptionsOf(object httpsMiddleware) => Options(httpsMiddleware);

    /// <summary>Null: there is a selector.</summary>
    public static SslStreamCertificateContext? CertificateContextOf(object httpsMiddleware) => CertificateContext(httpsMiddleware);

    public static HttpProtocols ProtocolsOf(object httpsMiddleware) => Protocols(httpsMiddleware);

    /// <summary>Kestrel's metrics, for the two methods below; null where they are not as expected.</summary>
    public static object? MetricsOf(IServiceProvider services) =>
        s_hasMetrics ? services.GetService(s_metricsType!) : null;

    /// <summary>Returns what <see cref="StopHandshake"/> wants; null where the connection is not Kestrel's.</summary>
    public static object? StartHandshake(object metrics, ConnectionContext connection)
    {
        // Kestrel's connection is this feature, among others.
        object? kestrel = connection.Features.Get<IConnectionHeartbeatFeature>();
        if (kestrel is null || !s_connectionType!.IsInstanceOfType(kestrel))
        {
            return null;
        }

        object context = MetricsContext(kestrel);
        TlsHandshakeStart(metrics, context);
        return context;
    }

    public static void StopHandshake(object metrics, object context, long startTimestamp, SslProtocols? protocol, Exception? failure) =>
        TlsHandshakeStop(metrics, context, startTimestamp, Stopwatch.GetTimestamp(), protocol, failure);

    public static SocketConnectionFactoryOptions ConnectionOptions(SocketTransportOptions transport) => NewConnectionOptions(transport);

    private static string FindMissing()
    {
        if (s_middlewareType is null)
        {
            return MiddlewareName;
        }

        try
        {
            // A member that is not there throws where its accessor is called first.
            KestrelServerOptions server = new();
            ListenOptions? endpoint = null;
            server.ListenAnyIP(0, e => endpoint = e);
            object middleware = RuntimeHelpers.GetUninitializedObject(s_middlewareType);
            _ = CodeBackedListenOptions(server).Count;
            _ = EndpointDefaults(server);
            _ = Middleware(endpoint!).Count;
            _ = Options(middleware);
            _ = CertificateContext(middleware);
            _ = Protocols(middleware);
            _ = NewConnectionOptions(new SocketTransportOptions());
            return "";
        }
        catch (Exception e)
        {
            return e.Message;
        }
    }

    [UnsafeAccessor(UnsafeAccessorKind.Method, Name = "get_CodeBackedListenOptions")]
    private static extern List<ListenOptions> CodeBackedListenOptions(KestrelServerOptions server);

    [UnsafeAccessor(UnsafeAccessorKind.Method, Name = "get_EndpointDefaults")]
    private static extern Action<ListenOptions> EndpointDefaults(KestrelServerOptions server);

    [UnsafeAccessor(UnsafeAccessorKind.Field, Name = "_middleware")]
    private static extern ref List<Func<ConnectionDelegate, ConnectionDelegate>> Middleware(ListenOptions endpoint);

    [UnsafeAccessor(UnsafeAccessorKind.Field, Name = "_options")]
    private static extern ref HttpsConnectionAdapterOptions? Options([UnsafeAccessorType(MiddlewareName)] object middleware);

    [UnsafeAccessor(UnsafeAccessorKind.Field, Name = "_serverCertificateContext")]
    private static extern ref SslStreamCertificateContext? CertificateContext([UnsafeAccessorType(MiddlewareName)] object middleware);

    [UnsafeAccessor(UnsafeAccessorKind.Field, Name = "_httpProtocols")]
    private static extern ref HttpProtocols Protocols([UnsafeAccessorType(MiddlewareName)] object middleware);

    /// <summary>Without them handshakes are not measured, and everything else works.</summary>
    private static bool FindMetrics() =>
        s_metricsType is not null
        && s_connectionType is not null
        && Exists(static () => MetricsContext(null!))
        && Exists(static () => TlsHandshakeStart(null!, null!))
        && Exists(static () => TlsHandshakeStop(null!, null!, 0, 0, null, null));

    /// <summary>A member that is there meets the object that is not.</summary>
    private static bool Exists(Action trial)
    {
        try
        {
            trial();
            return true;
        }
        catch (NullReferenceException)
        {
            return true;
        }
        catch (Exception)
        {
            return false;
        }
    }

    [UnsafeAccessor(UnsafeAccessorKind.Constructor)]
    private static extern SocketConnectionFactoryOptions NewConnectionOptions(SocketTransportOptions transport);

    [UnsafeAccessor(UnsafeAccessorKind.Method, Name = "get_MetricsContext")]
    [return: UnsafeAccessorType(MetricsContextName)]
    private static extern object MetricsContext([UnsafeAccessorType(ConnectionName)] object connection);

    [UnsafeAccessor(UnsafeAccessorKind.Method, Name = "TlsHandshakeStart")]
    private static extern void TlsHandshakeStart(
        [UnsafeAccessorType(MetricsName)] object metrics, [UnsafeAccessorType(MetricsContextName)] object context);

    [UnsafeAccessor(UnsafeAccessorKind.Method, Name = "TlsHandshakeStop")]
    private static extern void TlsHandshakeStop(
        [UnsafeAccessorType(MetricsName)] object metrics,
        [UnsafeAccessorType(MetricsContextName)] object context,
        long startTimestamp,
        long currentTimestamp,
        SslProtocols? protocol,
        Exception? exception);
}

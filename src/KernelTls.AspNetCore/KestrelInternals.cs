using System.Diagnostics;
using System.Diagnostics.CodeAnalysis;
using System.Diagnostics.Tracing;
using System.Net.Security;
using System.Reflection;
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
/// They serve four ends: to stand directly in front of the stock TLS middleware of every endpoint, however that was made; to
/// serve it with that middleware's own options, or callback, which are complete: defaults, configuration and certificate
/// applied; to set Kestrel's own features on the connection; and to tell of handshakes in Kestrel's own metrics and events,
/// which are done without where they are not as expected.
/// </remarks>
internal static class KestrelInternals
{
    /// <summary>The name that the stock TLS middleware logs under.</summary>
    public const string HttpsCategory = "Microsoft.AspNetCore.Server.Kestrel.Https.Internal.HttpsConnectionMiddleware";

    private const string MiddlewareName = HttpsCategory + ", Microsoft.AspNetCore.Server.Kestrel.Core";

    private const string FeatureName =
        "Microsoft.AspNetCore.Server.Kestrel.Core.Internal.TlsConnectionFeature, Microsoft.AspNetCore.Server.Kestrel.Core";

    // The type argument is the middleware's own.
    private const string LoggerName =
        "Microsoft.Extensions.Logging.ILogger`1[[" + MiddlewareName + "]], Microsoft.Extensions.Logging.Abstractions";

    private const string EventSourceName =
        "Microsoft.AspNetCore.Server.Kestrel.Core.Internal.Infrastructure.KestrelEventSource, Microsoft.AspNetCore.Server.Kestrel.Core";

    private const string MetricsName =
        "Microsoft.AspNetCore.Server.Kestrel.Core.Internal.Infrastructure.KestrelMetrics, Microsoft.AspNetCore.Server.Kestrel.Core";

    private const string MetricsContextName =
        "Microsoft.AspNetCore.Server.Kestrel.Core.Internal.Infrastructure.ConnectionMetricsContext, Microsoft.AspNetCore.Server.Kestrel.Core";

    private const string ConnectionName =
        "Microsoft.AspNetCore.Server.Kestrel.Core.Internal.Infrastructure.KestrelConnection, Microsoft.AspNetCore.Server.Kestrel.Core";

    [DynamicallyAccessedMembers(
        DynamicallyAccessedMemberTypes.PublicConstructors
        | DynamicallyAccessedMemberTypes.NonPublicConstructors
        | DynamicallyAccessedMemberTypes.NonPublicFields)]
    private static readonly Type? s_middlewareType = Type.GetType(MiddlewareName);

    [DynamicallyAccessedMembers(
        DynamicallyAccessedMemberTypes.PublicConstructors | DynamicallyAccessedMemberTypes.NonPublicConstructors)]
    private static readonly Type? s_featureType = Type.GetType(FeatureName);

    // .NET 11 gives the feature the middleware's logger, and has it keep what it knows when the connection ends.
    private static readonly bool s_featureKeeps = s_featureType is not null && Exists(static () => Snapshot(null!));
    private static readonly FieldInfo? s_loggerField = s_middlewareType?.GetField("_logger", BindingFlags.Instance | BindingFlags.NonPublic);

    private static readonly Type? s_metricsType = Type.GetType(MetricsName);
    private static readonly Type? s_connectionType = Type.GetType(ConnectionName);
    private static readonly bool s_hasMetrics = FindMetrics();

    // Kestrel makes it before its first connection, not before its options.
    private static readonly Lazy<EventSource?> s_events = new(FindEvents);

    public static bool IsAvailable => Missing.Length == 0;

    /// <summary>What is missing, for the log; empty where nothing is.</summary>
    public static string Missing { get; } = FindMissing();

    /// <summary>The stock TLS middleware, if that is what <paramref name="next"/> calls.</summary>
    public static object? HttpsMiddlewareOf(ConnectionDelegate next) =>
        next.Target is { } target && target.GetType() == s_middlewareType ? target : null;

    /// <summary>
    /// Those made in code, and those of the configuration if it has been read by now: UseHttps in code has Kestrel read it.
    /// </summary>
    public static IEnumerable<ListenOptions> EndpointsOf(KestrelServerOptions server) =>
        CodeBackedListenOptions(server).Concat(ConfigurationBackedListenOptions(server));

    public static Action<ListenOptions> EndpointDefaultsOf(KestrelServerOptions server) => EndpointDefaults(server);

    public static List<Func<ConnectionDelegate, ConnectionDelegate>> MiddlewareOf(ListenOptions endpoint) => Middleware(endpoint);

    /// <summary>UseHttps was called.</summary>
    public static bool IsHttps(ListenOptions endpoint) => IsTls(endpoint);

    /// <summary>Null: the options are chosen for each connection.</summary>
    public static HttpsConnectionAdapterOptions? OptionsOf(object httpsMiddleware) => Options(httpsMiddleware);

    /// <summary>Null: there is a selector.</summary>
    public static SslStreamCertificateContext? CertificateContextOf(object httpsMiddleware) => CertificateContext(httpsMiddleware);

    public static HttpProtocols ProtocolsOf(object httpsMiddleware) => Protocols(httpsMiddleware);

    public static TimeSpan HandshakeTimeoutOf(object httpsMiddleware) => HandshakeTimeout(httpsMiddleware);

    /// <summary>Chooses the options for each connection; null where <see cref="OptionsOf"/> has them.</summary>
    public static Func<TlsHandshakeCallbackContext, ValueTask<SslServerAuthenticationOptions>>? CallbackOf(object httpsMiddleware) =>
        Callback(httpsMiddleware);

    public static object? CallbackStateOf(object httpsMiddleware) => CallbackState(httpsMiddleware);

    /// <summary>What the stock middleware gives to its callback.</summary>
    public static TlsHandshakeCallbackContext CallbackContext(
        ConnectionContext connection, SslStream stream, SslClientHelloInfo hello, object? state, CancellationToken cancellationToken)
    {
        TlsHandshakeCallbackContext context = new();
        SetConnection(context, connection);
        SetStream(context, stream);
        SetHello(context, hello);
        SetState(context, state);
        SetToken(context, cancellationToken);
        return context;
    }

    /// <summary>
    /// The feature by which Kestrel and the application see a connection's TLS: ITlsConnectionFeature, ITlsHandshakeFeature,
    /// ITlsApplicationProtocolFeature and ISslStreamFeature in one.
    /// </summary>
    /// <param name="httpsMiddleware">The stock middleware, whose logger the feature uses.</param>
    /// <param name="stream">The stream of the connection.</param>
    /// <param name="connection">The connection.</param>
    public static object TlsFeature(object httpsMiddleware, SslStream stream, ConnectionContext connection) =>
        s_featureKeeps ? NewFeature(stream, connection, s_loggerField!.GetValue(httpsMiddleware)!) : NewFeature(stream, connection);

    /// <summary>Has the feature keep what it answers, before the stream is disposed. Does nothing on .NET 10, where it does not keep it.</summary>
    public static void KeepTlsFeature(object tlsFeature)
    {
        if (s_featureKeeps)
        {
            Snapshot(tlsFeature);
        }
    }

    /// <summary>Sets the feature's exception of a failed handshake. Does nothing on .NET 10, whose feature has none.</summary>
    public static void SetFailure(object tlsFeature, Exception failure)
    {
        if (s_featureKeeps)
        {
            SetException(tlsFeature, failure);
        }
    }

    public static void SetHostName(object tlsFeature, string name) => FeatureHostName(tlsFeature, name);

    /// <summary>A request may ask for the client's certificate later.</summary>
    public static void AllowDelayedCertificate(object tlsFeature, bool allow) => FeatureAllowDelayed(tlsFeature, allow);

    public static bool AllowsDelayedCertificate(object tlsFeature) => FeatureAllowsDelayed(tlsFeature);

    /// <summary>Kestrel's metrics, for the two methods below; null where they are not as expected.</summary>
    public static object? MetricsOf(IServiceProvider services) =>
        s_hasMetrics ? services.GetService(s_metricsType!) : null;

    /// <summary>What the metrics know the connection by; null where it is not Kestrel's.</summary>
    public static object? MetricsContextOf(ConnectionContext connection)
    {
        // Kestrel's connection is this feature, among others.
        object? kestrel = connection.Features.Get<IConnectionHeartbeatFeature>();
        return kestrel is not null && s_connectionType!.IsInstanceOfType(kestrel) ? MetricsContext(kestrel) : null;
    }

    public static void StartHandshake(object metrics, object context) => TlsHandshakeStart(metrics, context);

    public static void StopHandshake(object metrics, object context, long startTimestamp, SslProtocols? protocol, Exception? failure) =>
        TlsHandshakeStop(metrics, context, startTimestamp, Stopwatch.GetTimestamp(), protocol, failure);

    /// <summary>Kestrel's events and event counters of handshakes, for the methods below; null where nobody can listen.</summary>
    public static object? Events => s_events.Value;

    public static void TellStart(object events, ConnectionContext connection, SslServerAuthenticationOptions options) =>
        EventStart(events, connection, options);

    /// <param name="events">From <see cref="Events"/>.</param>
    /// <param name="connection">The connection.</param>
    /// <param name="tlsFeature">Null: it failed.</param>
    public static void TellStop(object events, ConnectionContext connection, object? tlsFeature) =>
        EventStop(events, connection, tlsFeature);

    public static void TellFailed(object events, ConnectionContext connection) => EventFailed(events, connection.ConnectionId);

    public static SocketConnectionFactoryOptions ConnectionOptions(SocketTransportOptions transport) => NewConnectionOptions(transport);

    private static string FindMissing()
    {
        if (s_middlewareType is null || s_featureType is null)
        {
            return s_middlewareType is null ? MiddlewareName : FeatureName;
        }

        if (s_featureKeeps && s_loggerField is null)
        {
            return MiddlewareName + "._logger";
        }

        try
        {
            // A member that is not there throws where its accessor is called first.
            KestrelServerOptions server = new();
            ListenOptions? endpoint = null;
            server.ListenAnyIP(0, e => endpoint = e);
            object middleware = RuntimeHelpers.GetUninitializedObject(s_middlewareType);
            _ = CodeBackedListenOptions(server).Count;
            _ = ConfigurationBackedListenOptions(server).Count;
            _ = EndpointDefaults(server);
            _ = Middleware(endpoint!).Count;
            _ = IsTls(endpoint!);
            _ = Options(middleware);
            _ = CertificateContext(middleware);
            _ = Protocols(middleware);
            _ = HandshakeTimeout(middleware);
            _ = Callback(middleware);
            _ = CallbackState(middleware);
            _ = CallbackContext(null!, null!, default, null, default);
            using SslStream stream = new(new MemoryStream());
            object feature = s_featureKeeps
                ? NewFeature(stream, new DefaultConnectionContext(), null!)
                : NewFeature(stream, new DefaultConnectionContext());
            FeatureHostName(feature, "");
            FeatureAllowDelayed(feature, FeatureAllowsDelayed(feature));
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

    [UnsafeAccessor(UnsafeAccessorKind.Method, Name = "get_ConfigurationBackedListenOptions")]
    private static extern List<ListenOptions> ConfigurationBackedListenOptions(KestrelServerOptions server);

    [UnsafeAccessor(UnsafeAccessorKind.Method, Name = "get_EndpointDefaults")]
    private static extern Action<ListenOptions> EndpointDefaults(KestrelServerOptions server);

    [UnsafeAccessor(UnsafeAccessorKind.Field, Name = "_middleware")]
    private static extern ref List<Func<ConnectionDelegate, ConnectionDelegate>> Middleware(ListenOptions endpoint);

    [UnsafeAccessor(UnsafeAccessorKind.Method, Name = "get_IsTls")]
    private static extern bool IsTls(ListenOptions endpoint);

    [UnsafeAccessor(UnsafeAccessorKind.Field, Name = "_options")]
    private static extern ref HttpsConnectionAdapterOptions? Options([UnsafeAccessorType(MiddlewareName)] object middleware);

    [UnsafeAccessor(UnsafeAccessorKind.Field, Name = "_serverCertificateContext")]
    private static extern ref SslStreamCertificateContext? CertificateContext([UnsafeAccessorType(MiddlewareName)] object middleware);

    [UnsafeAccessor(UnsafeAccessorKind.Field, Name = "_httpProtocols")]
    private static extern ref HttpProtocols Protocols([UnsafeAccessorType(MiddlewareName)] object middleware);

    [UnsafeAccessor(UnsafeAccessorKind.Field, Name = "_handshakeTimeout")]
    private static extern ref TimeSpan HandshakeTimeout([UnsafeAccessorType(MiddlewareName)] object middleware);

    [UnsafeAccessor(UnsafeAccessorKind.Field, Name = "_tlsCallbackOptions")]
    private static extern ref Func<TlsHandshakeCallbackContext, ValueTask<SslServerAuthenticationOptions>>? Callback(
        [UnsafeAccessorType(MiddlewareName)] object middleware);

    [UnsafeAccessor(UnsafeAccessorKind.Field, Name = "_tlsCallbackOptionsState")]
    private static extern ref object? CallbackState([UnsafeAccessorType(MiddlewareName)] object middleware);

    [UnsafeAccessor(UnsafeAccessorKind.Method, Name = "set_Connection")]
    private static extern void SetConnection(TlsHandshakeCallbackContext context, ConnectionContext value);

    [UnsafeAccessor(UnsafeAccessorKind.Method, Name = "set_SslStream")]
    private static extern void SetStream(TlsHandshakeCallbackContext context, SslStream value);

    [UnsafeAccessor(UnsafeAccessorKind.Method, Name = "set_ClientHelloInfo")]
    private static extern void SetHello(TlsHandshakeCallbackContext context, SslClientHelloInfo value);

    [UnsafeAccessor(UnsafeAccessorKind.Method, Name = "set_State")]
    private static extern void SetState(TlsHandshakeCallbackContext context, object? value);

    [UnsafeAccessor(UnsafeAccessorKind.Method, Name = "set_CancellationToken")]
    private static extern void SetToken(TlsHandshakeCallbackContext context, CancellationToken value);

    [UnsafeAccessor(UnsafeAccessorKind.Constructor)]
    [return: UnsafeAccessorType(FeatureName)]
    private static extern object NewFeature(SslStream stream, ConnectionContext connection);

    // .NET 11.
    [UnsafeAccessor(UnsafeAccessorKind.Constructor)]
    [return: UnsafeAccessorType(FeatureName)]
    private static extern object NewFeature(
        SslStream stream, ConnectionContext connection, [UnsafeAccessorType(LoggerName)] object logger);

    [UnsafeAccessor(UnsafeAccessorKind.Method, Name = "Snapshot")]
    private static extern void Snapshot([UnsafeAccessorType(FeatureName)] object feature);

    [UnsafeAccessor(UnsafeAccessorKind.Method, Name = "set_Exception")]
    private static extern void SetException([UnsafeAccessorType(FeatureName)] object feature, Exception value);

    [UnsafeAccessor(UnsafeAccessorKind.Method, Name = "set_HostName")]
    private static extern void FeatureHostName([UnsafeAccessorType(FeatureName)] object feature, string value);

    [UnsafeAccessor(UnsafeAccessorKind.Method, Name = "get_AllowDelayedClientCertificateNegotation")]
    private static extern bool FeatureAllowsDelayed([UnsafeAccessorType(FeatureName)] object feature);

    [UnsafeAccessor(UnsafeAccessorKind.Method, Name = "set_AllowDelayedClientCertificateNegotation")]
    private static extern void FeatureAllowDelayed([UnsafeAccessorType(FeatureName)] object feature, bool value);

    /// <summary>Without them handshakes are not measured, and everything else works.</summary>
    private static bool FindMetrics() =>
        s_metricsType is not null
        && s_connectionType is not null
        && Exists(static () => MetricsContext(null!))
        && Exists(static () => TlsHandshakeStart(null!, null!))
        && Exists(static () => TlsHandshakeStop(null!, null!, 0, 0, null, null));

    /// <summary>As <see cref="FindMetrics"/>, for events.</summary>
    private static EventSource? FindEvents() =>
        s_featureType is not null
        && Exists(static () => EventStart(null!, null!, null!))
        && Exists(static () => EventStop(null!, null!, null))
        && Exists(static () => EventFailed(null!, ""))
            ? EventSource.GetSources().FirstOrDefault(s => s.GetType() == Type.GetType(EventSourceName))
            : null;

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

    [UnsafeAccessor(UnsafeAccessorKind.Method, Name = "TlsHandshakeStart")]
    private static extern void EventStart(
        [UnsafeAccessorType(EventSourceName)] object events, BaseConnectionContext connection, SslServerAuthenticationOptions options);

    [UnsafeAccessor(UnsafeAccessorKind.Method, Name = "TlsHandshakeStop")]
    private static extern void EventStop(
        [UnsafeAccessorType(EventSourceName)] object events,
        BaseConnectionContext connection,
        [UnsafeAccessorType(FeatureName)] object? feature);

    [UnsafeAccessor(UnsafeAccessorKind.Method, Name = "TlsHandshakeFailed")]
    private static extern void EventFailed([UnsafeAccessorType(EventSourceName)] object events, string connectionId);
}

using System.Diagnostics.CodeAnalysis;
using System.Net.Security;
using System.Runtime.CompilerServices;
using Microsoft.AspNetCore.Connections;
using Microsoft.AspNetCore.Server.Kestrel.Core;
using Microsoft.AspNetCore.Server.Kestrel.Https;
using Microsoft.AspNetCore.Server.Kestrel.Transport.Sockets;

namespace KernelTls.AspNetCore;

/// <summary>
/// The only file that knows private members of ASP.NET Core. Each is tried once; <see cref="IsAvailable"/> is false where one
/// is missing, and then no endpoint leaves the stock TLS.
/// </summary>
/// <remarks>
/// They serve two ends: to stand directly in front of the stock TLS middleware of every endpoint, however that was made; and
/// to serve it with that middleware's own options, which are complete: defaults, configuration and certificate applied.
/// </remarks>
internal static class KestrelInternals
{
    private const string MiddlewareName =
        "Microsoft.AspNetCore.Server.Kestrel.Https.Internal.HttpsConnectionMiddleware, Microsoft.AspNetCore.Server.Kestrel.Core";

    [DynamicallyAccessedMembers(DynamicallyAccessedMemberTypes.PublicConstructors | DynamicallyAccessedMemberTypes.NonPublicConstructors)]
    private static readonly Type? s_middlewareType = Type.GetType(MiddlewareName);

    static KestrelInternals() => Missing = FindMissing();

    public static bool IsAvailable => Missing.Length == 0;

    /// <summary>What is missing, for the log; empty where nothing is.</summary>
    public static string Missing { get; }

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

    public static SocketConnectionFactoryOptions ConnectionOptions(SocketTransportOptions transport) => NewConnectionOptions(transport);

    private static string FindMissing()
    {
        if (s_middlewareType is null)
        {
            return MiddlewareName;
        }

        // One that is not there throws where it is called first. Null objects would hide that behind their own exception.
        KestrelServerOptions server = new();
        ListenOptions? endpoint = null;
        server.ListenAnyIP(0, e => endpoint = e);
        object middleware = RuntimeHelpers.GetUninitializedObject(s_middlewareType);
        Action[] trials =
        [
            () => CodeBackedListenOptions(server),
            () => EndpointDefaults(server),
            () => Middleware(endpoint!),
            () => Options(middleware),
            () => CertificateContext(middleware),
            () => Protocols(middleware),
            () => NewConnectionOptions(new SocketTransportOptions()),
        ];
        foreach (Action trial in trials)
        {
            try
            {
                trial();
            }
            catch (Exception e) when (e is MissingMemberException or TypeLoadException or NotSupportedException)
            {
                return e.Message;
            }
        }

        return "";
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

    [UnsafeAccessor(UnsafeAccessorKind.Constructor)]
    private static extern SocketConnectionFactoryOptions NewConnectionOptions(SocketTransportOptions transport);
}

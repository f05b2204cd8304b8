using System.Runtime.CompilerServices;
using Microsoft.AspNetCore.Connections;
using Microsoft.AspNetCore.Server.Kestrel.Core;
using Microsoft.AspNetCore.Server.Kestrel.Transport.Sockets;
using Microsoft.Extensions.Configuration;

namespace KernelTls.AspNetCore.Internals;

/// <summary>Provides access to private members of Kestrel's options and transport.</summary>
/// <remarks>
/// <para>
/// Only the types of this namespace know private members of ASP.NET Core. Each member is tried once. If one is missing, every
/// endpoint uses Kestrel's HTTPS middleware. <see cref="KestrelCanary"/> tests whether they behave as expected.
/// </para>
/// <para>
/// They serve six purposes. They insert a middleware directly in front of Kestrel's HTTPS middleware of every
/// endpoint, however that was created. They read that middleware's options or callback, which are complete: defaults,
/// configuration and certificate are applied (<see cref="KestrelHttpsMiddleware"/>). They set Kestrel's own features on the
/// connection (<see cref="KestrelTlsFeature"/>). They report handshakes in Kestrel's own metrics and events, which are
/// omitted if those members differ (<see cref="KestrelMetrics"/>, <see cref="KestrelEvents"/>). They find the section of an
/// endpoint in the configuration. And they repair HTTP/2 streams, which are otherwise left as they are (<see cref="KestrelHttp2Stream"/>).
/// </para>
/// </remarks>
internal static class KestrelInternals
{
    /// <summary>The category under which Kestrel's HTTPS middleware logs.</summary>
    public const string HttpsCategory = "Microsoft.AspNetCore.Server.Kestrel.Https.Internal.HttpsConnectionMiddleware";

    private const string EndpointConfigType =
        "Microsoft.AspNetCore.Server.Kestrel.Core.Internal.EndpointConfig, Microsoft.AspNetCore.Server.Kestrel.Core";

    /// <summary>Gets a description of the missing member, for the log, or an empty string.</summary>
    public static string Missing { get; } = FindMissing();

    /// <summary>
    /// Returns the endpoints created in code, and those of the configuration if it has been read by now. UseHttps in
    /// code makes Kestrel read it.
    /// </summary>
    public static IEnumerable<ListenOptions> EndpointsOf(KestrelServerOptions server) =>
        CodeBackedListenOptions(server).Concat(ConfigurationBackedListenOptions(server));

    public static Action<ListenOptions> EndpointDefaultsOf(KestrelServerOptions server) => EndpointDefaults(server);

    public static List<Func<ConnectionDelegate, ConnectionDelegate>> MiddlewareOf(ListenOptions endpoint) => Middleware(endpoint);

    /// <summary>Returns the section <c>Kestrel:Endpoints:NAME</c> of an endpoint of the configuration, or null, also before Kestrel has set it up.</summary>
    public static IConfigurationSection? SectionOf(ListenOptions endpoint) => EndpointConfig(endpoint) is { } config ? ConfigSection(config) : null;

    /// <summary>Returns whether UseHttps was called.</summary>
    public static bool IsHttps(ListenOptions endpoint) => IsTls(endpoint);

    public static SocketConnectionFactoryOptions ConnectionOptions(SocketTransportOptions transport) => NewConnectionOptions(transport);

    /// <summary>Returns whether a member exists: called on a null object, it throws a NullReferenceException.</summary>
    public static bool Exists(Action trial)
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

    private static string FindMissing()
    {
        string type = KestrelHttpsMiddleware.MissingType + KestrelTlsFeature.MissingType;
        if (type.Length != 0)
        {
            return type;
        }

        try
        {
            // If a member is missing, the first call of its accessor throws.
            KestrelServerOptions server = new();
            ListenOptions? endpoint = null;
            server.ListenAnyIP(0, e => endpoint = e);
            _ = CodeBackedListenOptions(server).Count;
            _ = ConfigurationBackedListenOptions(server).Count;
            _ = EndpointDefaults(server);
            _ = Middleware(endpoint!).Count;
            _ = IsTls(endpoint!);
            _ = EndpointConfig(endpoint!);
            if (!Exists(static () => ConfigSection(null!)))
            {
                return "EndpointConfig.ConfigSection";
            }

            _ = NewConnectionOptions(new SocketTransportOptions());
            KestrelHttpsMiddleware.TryMembers();
            KestrelTlsFeature.TryMembers();
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

    [UnsafeAccessor(UnsafeAccessorKind.Method, Name = "get_EndpointConfig")]
    [return: UnsafeAccessorType(EndpointConfigType)]
    private static extern object? EndpointConfig(ListenOptions endpoint);

    [UnsafeAccessor(UnsafeAccessorKind.Method, Name = "get_ConfigSection")]
    private static extern IConfigurationSection ConfigSection([UnsafeAccessorType(EndpointConfigType)] object config);

    [UnsafeAccessor(UnsafeAccessorKind.Constructor)]
    private static extern SocketConnectionFactoryOptions NewConnectionOptions(SocketTransportOptions transport);
}

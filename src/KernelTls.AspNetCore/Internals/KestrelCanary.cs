using System.Diagnostics.CodeAnalysis;
using System.Net.Security;
using System.Runtime.CompilerServices;
using System.Security.Authentication;
using KernelTls.Interop;
using Microsoft.AspNetCore.Connections;
using Microsoft.AspNetCore.Connections.Features;
using Microsoft.AspNetCore.Hosting;
using Microsoft.AspNetCore.Http.Features;
using Microsoft.AspNetCore.Server.Kestrel.Core;
using Microsoft.AspNetCore.Server.Kestrel.Core.Features;
using Microsoft.AspNetCore.Server.Kestrel.Https;
using Microsoft.AspNetCore.Server.Kestrel.Transport.Sockets;
using Microsoft.Extensions.Logging;
using Microsoft.Extensions.Logging.Abstractions;

namespace KernelTls.AspNetCore.Internals;

/// <summary>Tests on dummies whether private members of Kestrel behave as this package expects.</summary>
/// <remarks>
/// The members are looked up by name and types, which stay the same if a later version stores something else there, or if its HTTPS
/// middleware no longer passes on connections that have TLS features. Used once per process, before the first endpoint is changed. The
/// trial has no certificate, because that would take most of its time; where a certificate is kept, each endpoint shows.
/// </remarks>
internal static class KestrelCanary
{
    private const string Host = "canary.test";

    private static readonly TimeSpan s_timeout = TimeSpan.FromSeconds(7);

    /// <summary>Returns a description of the difference, or an empty string. Does not throw.</summary>
    public static string FindChange() => FindChange(new KestrelMembers());

    /// <inheritdoc cref="FindChange()"/>
    /// <param name="members">The functions to try.</param>
    public static string FindChange(KestrelMembers members)
    {
        try
        {
            string difference = FindInTransport(members);
            difference = difference.Length != 0 ? difference : FindInEndpoint(members);
            return difference.Length != 0 ? difference : FindInCallback(members);
        }
        catch (Exception e)
        {
            return $"A trial of Kestrel's private members failed: {e.GetType().Name}: {e.Message}";
        }
    }

    /// <summary>Returns how the middleware of an endpoint differs where the dummies have nothing, or an empty string.</summary>
    public static string FindChangeIn(KestrelHttpsMiddleware https) => FindChangeIn(https, new KestrelMembers());

    /// <inheritdoc cref="FindChangeIn(KestrelHttpsMiddleware)"/>
    /// <param name="https">The middleware.</param>
    /// <param name="members">The functions to try.</param>
    public static string FindChangeIn(KestrelHttpsMiddleware https, KestrelMembers members) =>
        members.OptionsOf(https) is { ServerCertificateSelector: null, ServerCertificate: { } certificate }
            && members.CertificateContextOf(https)?.TargetCertificate.Equals(certificate) is not true
            ? "HttpsConnectionMiddleware._serverCertificateContext is not that of the certificate that UseHttps set"
            : "";

    private static string FindInTransport(KestrelMembers members)
    {
        SocketTransportOptions transport = new() { MaxReadBufferSize = 12_345, MaxWriteBufferSize = 23_456, WaitForDataBeforeAllocatingBuffer = false };
        SocketConnectionFactoryOptions options = members.ConnectionOptions(transport);
        return (options.MaxReadBufferSize, options.MaxWriteBufferSize, options.WaitForDataBeforeAllocatingBuffer) == (12_345, 23_456, false)
            ? ""
            : "SocketConnectionFactoryOptions does not copy SocketTransportOptions";
    }

    private static string FindInEndpoint(KestrelMembers members)
    {
        KestrelServerOptions server = CreateServer();
        Action<ListenOptions> defaults = static _ => { };
        server.ConfigureEndpointDefaults(defaults);
        if (members.EndpointDefaultsOf(server) != defaults)
        {
            return "KestrelServerOptions.EndpointDefaults is not what ConfigureEndpointDefaults set";
        }

        ListenOptions endpoint = Listen(server);
        if (!members.EndpointsOf(server).SequenceEqual([endpoint]))
        {
            return "KestrelServerOptions does not list the endpoint that was added";
        }

        HttpsConnectionAdapterOptions options = new() { ServerCertificateSelector = static (_, _) => null, HandshakeTimeout = s_timeout };
        bool isHttps = members.IsHttps(endpoint);
        endpoint.Protocols = HttpProtocols.Http1;
        endpoint.UseHttps(options);
        return isHttps || !members.IsHttps(endpoint) ? "ListenOptions.IsTls does not follow UseHttps"
            : Build(members, endpoint, out StrongBox<bool> isPassedOn) is not { } built || KestrelHttpsMiddleware.Of(built) is not { } https
                ? "A step in ListenOptions._middleware in front of UseHttps does not call Kestrel's HTTPS middleware"
            : members.OptionsOf(https) != options ? "HttpsConnectionMiddleware._options is not what UseHttps set"
            : members.CallbackOf(https) is not null ? "HttpsConnectionMiddleware has a callback for an endpoint with options"
            : members.CertificateContextOf(https) is not null ? "HttpsConnectionMiddleware has a certificate's context for an endpoint with a selector"
            : FindInSettings(members, https) is { Length: > 0 } difference ? difference
            : FindInFeature(members, https, built, isPassedOn);
    }

    private static string FindInCallback(KestrelMembers members)
    {
        ListenOptions endpoint = Listen(CreateServer());
        endpoint.Protocols = HttpProtocols.Http1;
        object state = new();
        TlsHandshakeCallbackOptions options = new()
        {
            OnConnection = static _ => ValueTask.FromResult(new SslServerAuthenticationOptions()),
            OnConnectionState = state,
            HandshakeTimeout = s_timeout,
        };
        endpoint.UseHttps(options);
        if (Build(members, endpoint, out _) is not { } built || KestrelHttpsMiddleware.Of(built) is not { } https)
        {
            return "A step in ListenOptions._middleware in front of UseHttps with a callback does not call Kestrel's HTTPS middleware";
        }

        if (members.OptionsOf(https) is not null || members.CallbackOf(https) != options.OnConnection)
        {
            return "HttpsConnectionMiddleware._tlsCallbackOptions is not what UseHttps set";
        }

        using SslStream stream = new(new MemoryStream());
        using CancellationTokenSource cancellation = new();
        DefaultConnectionContext connection = new();
        TlsHandshakeCallbackContext context =
            members.CreateCallbackContext(https, connection, stream, new SslClientHelloInfo(Host, SslProtocols.Tls13), cancellation.Token);
        return context.State != state ? "HttpsConnectionMiddleware._tlsCallbackOptionsState is not what UseHttps set"
            : context.Connection != connection
                || context.SslStream != stream
                || context.ClientHelloInfo.ServerName != Host
                || context.CancellationToken != cancellation.Token ? "TlsHandshakeCallbackContext does not return what was set"
            : FindInSettings(members, https);
    }

    private static string FindInSettings(KestrelMembers members, KestrelHttpsMiddleware https) =>
        members.ProtocolsOf(https) != HttpProtocols.Http1 ? $"HttpsConnectionMiddleware._httpProtocols is {members.ProtocolsOf(https)}, not that of the endpoint"
        : members.HandshakeTimeoutOf(https) != s_timeout ? "HttpsConnectionMiddleware._handshakeTimeout is not what UseHttps set"
        : "";

    private static string FindInFeature(KestrelMembers members, KestrelHttpsMiddleware https, ConnectionDelegate built, StrongBox<bool> isPassedOn)
    {
        SslStream stream = new(new MemoryStream());
        RuntimeInternals.Publish(
            stream, SslProtocols.Tls13, TlsCipherSuite.TLS_AES_128_GCM_SHA256, SslApplicationProtocol.Http2.Protocol.ToArray(), inHandshake: true);
        DefaultConnectionContext connection = new();
        KestrelTlsFeature feature = members.CreateTlsFeature(https, stream, connection);
        feature.AddTo(connection.Features);
        members.SetHostName(feature, Host);
        members.AllowDelayedCertificate(feature, true);
        if (connection.Features.Get<ISslStreamFeature>()?.SslStream != stream
            || connection.Features.Get<ITlsHandshakeFeature>()?.HostName != Host
            || !feature.AllowsDelayedCertificate)
        {
            return "TlsConnectionFeature does not return what was set";
        }

        Task handled = built(connection);
        if (!handled.IsCompletedSuccessfully || !isPassedOn.Value)
        {
            return "HttpsConnectionMiddleware does not pass on a connection that has TLS features";
        }

        members.Snapshot(feature);
        if (KestrelTlsFeature.TakesLogger)
        {
            stream.Dispose();
        }

        bool isSame = connection.Features.Get<ITlsHandshakeFeature>()?.Protocol == SslProtocols.Tls13
            && connection.Features.Get<ITlsApplicationProtocolFeature>()?.ApplicationProtocol.Span.SequenceEqual("h2"u8) is true;
        stream.Dispose();
        return isSame ? "" : "TlsConnectionFeature does not return what the stream negotiated";
    }

    /// <summary>Builds the pipeline of an endpoint, and returns what a step in front of its middleware calls.</summary>
    /// <param name="members">The functions to try.</param>
    /// <param name="endpoint">The endpoint.</param>
    /// <param name="isPassedOn">Receives a box that is set to <see langword="true"/> when a connection passes the middleware.</param>
    private static ConnectionDelegate? Build(KestrelMembers members, ListenOptions endpoint, out StrongBox<bool> isPassedOn)
    {
        ConnectionDelegate? inner = null;
        StrongBox<bool> box = isPassedOn = new StrongBox<bool>();
        endpoint.Use(_ => _ =>
        {
            box.Value = true;
            return Task.CompletedTask;
        });
        members.MiddlewareOf(endpoint).Insert(0, next => inner = next);
        endpoint.Build();
        return inner;
    }

    private static KestrelServerOptions CreateServer() => new() { ApplicationServices = new Services() };

    private static ListenOptions Listen(KestrelServerOptions server)
    {
        ListenOptions? endpoint = null;
        server.ListenAnyIP(0, e => endpoint = e);
        return endpoint!;
    }

    /// <summary>Provides what UseHttps asks for and nothing here uses: loggers, and Kestrel's metrics, whose type is private.</summary>
    private sealed class Services : IServiceProvider
    {
        [UnconditionalSuppressMessage("Trimming", "IL2067", Justification = "No constructor is called, and no member.")]
        public object? GetService(Type serviceType) => serviceType == typeof(ILoggerFactory)
            ? NullLoggerFactory.Instance
            : RuntimeHelpers.GetUninitializedObject(serviceType);
    }
}

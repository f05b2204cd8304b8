using System.Net.Security;
using Microsoft.AspNetCore.Connections;
using Microsoft.AspNetCore.Server.Kestrel.Core;
using Microsoft.AspNetCore.Server.Kestrel.Https;
using Microsoft.AspNetCore.Server.Kestrel.Transport.Sockets;

namespace KernelTls.AspNetCore.Internals;

/// <summary>
/// Contains the functions that <see cref="KestrelCanary"/> tries: those that this package uses, unless a test replaces one.
/// </summary>
internal sealed record KestrelMembers
{
    public Func<KestrelServerOptions, IEnumerable<ListenOptions>> EndpointsOf { get; init; } = KestrelInternals.EndpointsOf;

    public Func<KestrelServerOptions, Action<ListenOptions>> EndpointDefaultsOf { get; init; } = KestrelInternals.EndpointDefaultsOf;

    public Func<ListenOptions, List<Func<ConnectionDelegate, ConnectionDelegate>>> MiddlewareOf { get; init; } = KestrelInternals.MiddlewareOf;

    public Func<ListenOptions, bool> IsHttps { get; init; } = KestrelInternals.IsHttps;

    public Func<SocketTransportOptions, SocketConnectionFactoryOptions> ConnectionOptions { get; init; } = KestrelInternals.ConnectionOptions;

    public Func<KestrelHttpsMiddleware, HttpsConnectionAdapterOptions?> OptionsOf { get; init; } = static m => m.Options;

    public Func<KestrelHttpsMiddleware, SslStreamCertificateContext?> CertificateContextOf { get; init; } = static m => m.CertificateContext;

    public Func<KestrelHttpsMiddleware, HttpProtocols> ProtocolsOf { get; init; } = static m => m.Protocols;

    public Func<KestrelHttpsMiddleware, TimeSpan> HandshakeTimeoutOf { get; init; } = static m => m.HandshakeTimeout;

    public Func<KestrelHttpsMiddleware, Func<TlsHandshakeCallbackContext, ValueTask<SslServerAuthenticationOptions>>?> CallbackOf { get; init; } =
        static m => m.Callback;

    public Func<KestrelHttpsMiddleware, ConnectionContext, SslStream, SslClientHelloInfo, CancellationToken, TlsHandshakeCallbackContext>
        CreateCallbackContext
    { get; init; } =
        static (m, connection, stream, hello, cancellationToken) => m.CreateCallbackContext(connection, stream, hello, cancellationToken);

    public Func<KestrelHttpsMiddleware, SslStream, ConnectionContext, KestrelTlsFeature> CreateTlsFeature { get; init; } =
        static (m, stream, connection) => m.CreateTlsFeature(stream, connection);

    public Action<KestrelTlsFeature, string> SetHostName { get; init; } = static (feature, name) => feature.SetHostName(name);

    public Action<KestrelTlsFeature, bool> AllowDelayedCertificate { get; init; } = static (feature, allows) => feature.AllowsDelayedCertificate = allows;

    public Action<KestrelTlsFeature> Snapshot { get; init; } = static feature => feature.Snapshot();
}

using System.Buffers;
using System.Net.Security;
using System.Security.Cryptography.X509Certificates;
using KernelTls.AspNetCore.Internals;
using Microsoft.AspNetCore.Connections;
using Microsoft.AspNetCore.Server.Kestrel.Core;
using Microsoft.AspNetCore.Server.Kestrel.Https;
using Microsoft.Extensions.Logging;

namespace KernelTls.AspNetCore.Tls;

/// <summary>
/// Describes an endpoint for its connections: the kernel TLS options, the options of Kestrel's HTTPS middleware, and where to
/// report.
/// </summary>
/// <param name="name">Kestrel's name of the endpoint.</param>
/// <param name="httpsMiddleware">Kestrel's HTTPS middleware.</param>
/// <param name="kernelTlsOptions">The kernel TLS options of the endpoint or the server.</param>
/// <param name="server">The server.</param>
/// <param name="metrics">Kestrel's metrics, or null.</param>
/// <param name="logger">This package's logger.</param>
/// <param name="httpsLogger">The logger with the category of Kestrel's HTTPS middleware.</param>
internal sealed class TlsEndpoint(
    string name,
    KestrelHttpsMiddleware httpsMiddleware,
    KtlsOptions kernelTlsOptions,
    KernelTlsServer server,
    KestrelMetrics? metrics,
    ILogger logger,
    ILogger httpsLogger)
{
    // One of the two is set: the options of all connections, or the callback that chooses them for each connection.
    private readonly HttpsConnectionAdapterOptions? _https = httpsMiddleware.Options;
    private readonly Func<TlsHandshakeCallbackContext, ValueTask<SslServerAuthenticationOptions>>? _callback = httpsMiddleware.Callback;

    private readonly SslStreamCertificateContext? _certificate = httpsMiddleware.CertificateContext;
    private readonly HttpProtocols _protocols = httpsMiddleware.Protocols;

    /// <summary>Gets the kernel TLS options of the endpoint's connections.</summary>
    public KtlsOptions Options => kernelTlsOptions;

    public ILogger Logger => logger;

    /// <summary>
    /// Gets the handshake timeout. Kestrel's options use TimeSpan.MaxValue for infinite, which timers do not accept.
    /// </summary>
    public TimeSpan HandshakeTimeout { get; } = httpsMiddleware.HandshakeTimeout is var timeout
        && timeout == TimeSpan.MaxValue ? Timeout.InfiniteTimeSpan : timeout;

    /// <summary>
    /// Gets a value that indicates whether a callback chooses the handshake options, which then depend on the ClientHello.
    /// </summary>
    public bool HasOptionsCallback => _callback is not null;

    /// <summary>
    /// Gets a value that indicates whether the ClientHello is needed before the handshake: for the application, or to
    /// choose the engine.
    /// </summary>
    public bool NeedsClientHello => HasOptionsCallback || AllowsDelayedCertificate || _https?.TlsClientHelloBytesCallback is not null;

    /// <summary>
    /// Gets a value that indicates whether a request may ask for the client's certificate later. If the options are
    /// chosen per connection, the callback decides instead.
    /// </summary>
    public bool AllowsDelayedCertificate => _https?.ClientCertificateMode == ClientCertificateMode.DelayCertificate;

    /// <summary>
    /// Gets the callback that validates the client's certificate, or null if none is requested or the chosen options
    /// have their own.
    /// </summary>
    public RemoteCertificateValidationCallback? ClientCertificateValidation =>
        _https is null or { ClientCertificateMode: ClientCertificateMode.NoCertificate } ? null : ValidateClientCertificate;

    /// <summary>Creates Kestrel's feature of a connection.</summary>
    public KestrelTlsFeature CreateTlsFeature(SslStream stream, ConnectionContext connection) =>
        httpsMiddleware.CreateTlsFeature(stream, connection);

    /// <summary>Creates the report of one handshake.</summary>
    public HandshakeReport CreateReport(ConnectionContext connection) => new(connection, metrics, httpsLogger);

    /// <inheritdoc cref="KernelTlsServer.Refuse"/>
    public void Refuse(KtlsFallbackReason reason) => server.Refuse(name, reason, kernelTlsOptions);

    /// <summary>Passes the record with the ClientHello to the application's callback, if there is one.</summary>
    public void InvokeClientHelloCallback(ConnectionContext connection, byte[] record) =>
        _https?.TlsClientHelloBytesCallback?.Invoke(connection, new ReadOnlySequence<byte>(record));

    /// <summary>Creates the handshake options of one connection.</summary>
    /// <remarks>The token is canceled by the handshake's timeout.</remarks>
    /// <param name="connection">The connection.</param>
    /// <param name="stream">The stream that performs the handshake.</param>
    /// <param name="tlsFeature">Kestrel's feature, which receives the callback's decisions.</param>
    /// <param name="hello">The client's offer, if the options depend on it.</param>
    /// <param name="cancellationToken">The token to monitor for cancellation requests.</param>
    public ValueTask<SslServerAuthenticationOptions> CreateHandshakeOptionsAsync(
        ConnectionContext connection, SslStream stream, KestrelTlsFeature tlsFeature, SslClientHelloInfo hello, CancellationToken cancellationToken) =>
        _https is not null
            ? ValueTask.FromResult(CreateHandshakeOptions(_https, connection))
            : InvokeOptionsCallbackAsync(httpsMiddleware.CreateCallbackContext(connection, stream, hello, cancellationToken), tlsFeature);

    private async ValueTask<SslServerAuthenticationOptions> InvokeOptionsCallbackAsync(
        TlsHandshakeCallbackContext context, KestrelTlsFeature tlsFeature)
    {
        tlsFeature.SetHostName(context.ClientHelloInfo.ServerName);
        SslServerAuthenticationOptions options = await _callback!(context).ConfigureAwait(false);
        tlsFeature.AllowsDelayedCertificate = context.AllowDelayedClientCertificateNegotation;
        if (options.ApplicationProtocols is null)
        {
            SetApplicationProtocols(options);
        }

        return options;
    }

    private SslServerAuthenticationOptions CreateHandshakeOptions(HttpsConnectionAdapterOptions https, ConnectionContext connection)
    {
        SslServerAuthenticationOptions options = new()
        {
            ServerCertificate = https.ServerCertificateSelector is null ? https.ServerCertificate : null,
            ServerCertificateContext = _certificate,
            ClientCertificateRequired =
                https.ClientCertificateMode is ClientCertificateMode.AllowCertificate or ClientCertificateMode.RequireCertificate,
            EnabledSslProtocols = https.SslProtocols,
            CertificateRevocationCheckMode = https.CheckCertificateRevocation ? X509RevocationMode.Online : X509RevocationMode.NoCheck,
        };
        if (https.ServerCertificateSelector is { } select)
        {
            options.ServerCertificateSelectionCallback = (_, hostName) => RequireServerAuthentication(select(connection, hostName));
        }

        SetApplicationProtocols(options);
        https.OnAuthenticate?.Invoke(connection, options);
        return options;
    }

    private void SetApplicationProtocols(SslServerAuthenticationOptions options)
    {
        options.ApplicationProtocols = [];
        if (_protocols.HasFlag(HttpProtocols.Http2))
        {
            options.ApplicationProtocols.Add(SslApplicationProtocol.Http2);

            // RFC 9113, section 9.2.1.
            options.AllowRenegotiation = false;
        }

        if (_protocols.HasFlag(HttpProtocols.Http1))
        {
            options.ApplicationProtocols.Add(SslApplicationProtocol.Http11);
        }
    }

    private bool ValidateClientCertificate(object sender, X509Certificate? certificate, X509Chain? chain, SslPolicyErrors errors)
    {
        if (certificate is null)
        {
            return _https!.ClientCertificateMode != ClientCertificateMode.RequireCertificate;
        }

        return _https!.ClientCertificateValidation is { } validation
            ? validation(AsCertificate2(certificate), chain, errors)
            : errors == SslPolicyErrors.None;
    }

    /// <summary>
    /// Checks a certificate as Kestrel's HTTPS middleware does: if it has extended key usages, they must include server
    /// authentication.
    /// </summary>
    private static X509Certificate2 RequireServerAuthentication(X509Certificate2? certificate)
    {
        const string ServerAuthentication = "1.3.6.1.5.5.7.3.1";
        X509EnhancedKeyUsageExtension[] usages = certificate?.Extensions.OfType<X509EnhancedKeyUsageExtension>().ToArray() ?? [];
        return usages.Length == 0 || usages.Any(u => u.EnhancedKeyUsages[ServerAuthentication] is not null)
            ? certificate!
            : throw new InvalidOperationException(
                $"ServerCertificateSelector returned the certificate with the thumbprint {certificate!.Thumbprint}, which is not valid for "
                + "server authentication.");
    }

    private static X509Certificate2 AsCertificate2(X509Certificate certificate) =>
        certificate as X509Certificate2 ?? X509CertificateLoader.LoadCertificate(certificate.GetRawCertData());
}

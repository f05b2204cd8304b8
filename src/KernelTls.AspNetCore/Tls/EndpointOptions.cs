using System.Buffers;
using System.Net.Security;
using System.Security.Cryptography.X509Certificates;
using Microsoft.AspNetCore.Connections;
using Microsoft.AspNetCore.Server.Kestrel.Core;
using Microsoft.AspNetCore.Server.Kestrel.Https;

namespace KernelTls.AspNetCore.Tls;

/// <summary>What an endpoint's stock TLS middleware was given, as options of handshakes.</summary>
/// <param name="httpsMiddleware">The stock middleware.</param>
internal sealed class EndpointOptions(object httpsMiddleware)
{
    // One of the two: the options of all connections, or who chooses those of each.
    private readonly HttpsConnectionAdapterOptions? _https = KestrelInternals.OptionsOf(httpsMiddleware);
    private readonly Func<TlsHandshakeCallbackContext, ValueTask<SslServerAuthenticationOptions>>? _callback =
        KestrelInternals.CallbackOf(httpsMiddleware);

    private readonly object? _callbackState = KestrelInternals.CallbackStateOf(httpsMiddleware);
    private readonly SslStreamCertificateContext? _certificate = KestrelInternals.CertificateContextOf(httpsMiddleware);
    private readonly HttpProtocols _protocols = KestrelInternals.ProtocolsOf(httpsMiddleware);

    /// <summary>Kestrel's options have TimeSpan.MaxValue for infinite, which no timer takes.</summary>
    public TimeSpan HandshakeTimeout { get; } = KestrelInternals.HandshakeTimeoutOf(httpsMiddleware) is var timeout
        && timeout == TimeSpan.MaxValue ? Timeout.InfiniteTimeSpan : timeout;

    /// <summary>The options depend on the ClientHello.</summary>
    public bool AreChosen => _callback is not null;

    /// <summary>The ClientHello is to be seen before the handshake: by the application, or by whoever is to choose who shakes hands.</summary>
    public bool NeedClientHello => AreChosen || AllowDelayedCertificate || _https?.TlsClientHelloBytesCallback is not null;

    /// <summary>A request may ask for the client's certificate later. Where options are chosen, the callback says so.</summary>
    public bool AllowDelayedCertificate => _https?.ClientCertificateMode == ClientCertificateMode.DelayCertificate;

    /// <summary>Judges the client's certificate; null where none is asked for, or the chosen options have their own.</summary>
    public RemoteCertificateValidationCallback? ClientValidation =>
        _https is null or { ClientCertificateMode: ClientCertificateMode.NoCertificate } ? null : Validate;

    /// <summary>Makes Kestrel's feature of a connection.</summary>
    public object CreateTlsFeature(SslStream stream, ConnectionContext connection) =>
        KestrelInternals.TlsFeature(httpsMiddleware, stream, connection);

    /// <summary>Shows the application the record with the ClientHello, if it wants to see it.</summary>
    public void Show(ConnectionContext connection, byte[] record) =>
        _https?.TlsClientHelloBytesCallback?.Invoke(connection, new ReadOnlySequence<byte>(record));

    /// <summary>The options of one connection.</summary>
    /// <param name="connection">The connection.</param>
    /// <param name="stream">The stream that is to shake hands.</param>
    /// <param name="tlsFeature">Kestrel's feature, which is told what the callback decides.</param>
    /// <param name="hello">Where they are chosen: what the client offers.</param>
    /// <param name="cancellationToken">Ends with the handshake's timeout.</param>
    public ValueTask<SslServerAuthenticationOptions> CreateAsync(
        ConnectionContext connection, SslStream stream, object tlsFeature, SslClientHelloInfo hello, CancellationToken cancellationToken) =>
        _https is not null
            ? ValueTask.FromResult(Create(_https, connection))
            : ChooseAsync(KestrelInternals.CallbackContext(connection, stream, hello, _callbackState, cancellationToken), tlsFeature);

    private async ValueTask<SslServerAuthenticationOptions> ChooseAsync(TlsHandshakeCallbackContext context, object tlsFeature)
    {
        KestrelInternals.SetHostName(tlsFeature, context.ClientHelloInfo.ServerName);
        SslServerAuthenticationOptions options = await _callback!(context).ConfigureAwait(false);
        KestrelInternals.AllowDelayedCertificate(tlsFeature, context.AllowDelayedClientCertificateNegotation);
        if (options.ApplicationProtocols is null)
        {
            SetApplicationProtocols(options);
        }

        return options;
    }

    private SslServerAuthenticationOptions Create(HttpsConnectionAdapterOptions https, ConnectionContext connection)
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
            options.ServerCertificateSelectionCallback = (_, name) => Checked(select(connection, name));
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

    private bool Validate(object sender, X509Certificate? certificate, X509Chain? chain, SslPolicyErrors errors)
    {
        if (certificate is null)
        {
            return _https!.ClientCertificateMode != ClientCertificateMode.RequireCertificate;
        }

        return _https!.ClientCertificateValidation is { } validation
            ? validation(AsCertificate2(certificate), chain, errors)
            : errors == SslPolicyErrors.None;
    }

    /// <summary>As the stock middleware has it: a certificate whose extended key usages leave out servers is not one's.</summary>
    private static X509Certificate2 Checked(X509Certificate2? certificate)
    {
        const string ServerAuthentication = "1.3.6.1.5.5.7.3.1";
        X509EnhancedKeyUsageExtension[] usages = certificate?.Extensions.OfType<X509EnhancedKeyUsageExtension>().ToArray() ?? [];
        return usages.Length == 0 || usages.Any(u => u.EnhancedKeyUsages[ServerAuthentication] is not null)
            ? certificate!
            : throw new InvalidOperationException(
                $"ServerCertificateSelector gave the certificate with the thumbprint {certificate!.Thumbprint}, which is not for "
                + "server authentication.");
    }

    private static X509Certificate2 AsCertificate2(X509Certificate certificate) =>
        certificate as X509Certificate2 ?? X509CertificateLoader.LoadCertificate(certificate.GetRawCertData());
}

using System.Net.Security;
using System.Security.Authentication;
using System.Security.Cryptography.X509Certificates;
using Microsoft.AspNetCore.Connections;
using Microsoft.AspNetCore.Server.Kestrel.Core;
using Microsoft.AspNetCore.Server.Kestrel.Https;

namespace KernelTls.AspNetCore.Tls;

/// <summary>What an endpoint's stock TLS middleware was given, as options of a handshake.</summary>
internal sealed class EndpointOptions
{
    private readonly HttpsConnectionAdapterOptions _https;
    private readonly SslStreamCertificateContext? _certificate;
    private readonly HttpProtocols _protocols;

    private EndpointOptions(HttpsConnectionAdapterOptions https, SslStreamCertificateContext? certificate, HttpProtocols protocols)
    {
        _https = https;
        _certificate = certificate;
        _protocols = protocols;
    }

    /// <summary>The adapter has TimeSpan.MaxValue for infinite, which no timer takes.</summary>
    public TimeSpan HandshakeTimeout =>
        _https.HandshakeTimeout == TimeSpan.MaxValue ? Timeout.InfiniteTimeSpan : _https.HandshakeTimeout;

    /// <summary>A request may ask for the client's certificate later.</summary>
    public bool AllowsDelayedCertificate => _https.ClientCertificateMode == ClientCertificateMode.DelayCertificate;

    /// <summary>Judges the client's certificate; null where none is asked for.</summary>
    public RemoteCertificateValidationCallback? ClientValidation =>
        _https.ClientCertificateMode == ClientCertificateMode.NoCertificate ? null : Validate;

    /// <summary>A reason: the endpoint stays with the stock middleware.</summary>
    public static KtlsFallbackReason TryCreate(object httpsMiddleware, out EndpointOptions? options)
    {
        options = null;
        if (KestrelInternals.OptionsOf(httpsMiddleware) is not { } https)
        {
            return KtlsFallbackReason.HandshakeCallback;
        }

        if (https.TlsClientHelloBytesCallback is not null)
        {
            return KtlsFallbackReason.ClientHelloCallback;
        }

        // HTTP/2 forbids it (RFC 9113, section 9.2.3), so that an endpoint without HTTP/1 never asks.
        HttpProtocols protocols = KestrelInternals.ProtocolsOf(httpsMiddleware);
        if (https.ClientCertificateMode == ClientCertificateMode.DelayCertificate
            && https.SslProtocols != SslProtocols.Tls13
            && protocols.HasFlag(HttpProtocols.Http1))
        {
            return KtlsFallbackReason.DelayedCertificate;
        }

        options = new EndpointOptions(https, KestrelInternals.CertificateContextOf(httpsMiddleware), protocols);
        return KtlsFallbackReason.None;
    }

    /// <summary>The options of one connection, after its OnAuthenticate.</summary>
    public SslServerAuthenticationOptions Create(ConnectionContext connection)
    {
        SslServerAuthenticationOptions options = new()
        {
            ServerCertificateContext = _certificate,
            ClientCertificateRequired =
                _https.ClientCertificateMode is ClientCertificateMode.AllowCertificate or ClientCertificateMode.RequireCertificate,
            EnabledSslProtocols = _https.SslProtocols,
            CertificateRevocationCheckMode = _https.CheckCertificateRevocation ? X509RevocationMode.Online : X509RevocationMode.NoCheck,
            ApplicationProtocols = [],
        };
        if (_https.ServerCertificateSelector is { } select)
        {
            options.ServerCertificateSelectionCallback = (_, name) => Checked(select(connection, name));
        }

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

        _https.OnAuthenticate?.Invoke(connection, options);
        return options;
    }

    private bool Validate(object sender, X509Certificate? certificate, X509Chain? chain, SslPolicyErrors errors)
    {
        if (certificate is null)
        {
            return _https.ClientCertificateMode != ClientCertificateMode.RequireCertificate;
        }

        return _https.ClientCertificateValidation is { } validation
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

    internal static X509Certificate2 AsCertificate2(X509Certificate certificate) =>
        certificate as X509Certificate2 ?? X509CertificateLoader.LoadCertificate(certificate.GetRawCertData());
}

using System.Net.Security;
using System.Security.Authentication;
using System.Security.Cryptography.X509Certificates;
using Microsoft.AspNetCore.Connections;
using Microsoft.AspNetCore.Connections.Features;
using Microsoft.AspNetCore.Http.Features;
using Microsoft.AspNetCore.Server.Kestrel.Core.Features;

namespace KernelTls.AspNetCore.Tls;

/// <summary>The features by which Kestrel and the application see a connection's TLS.</summary>
internal sealed class TlsFeatures(KtlsStream stream, ConnectionContext connection, bool allowsDelayedCertificate)
    : ITlsConnectionFeature, ITlsHandshakeFeature, ITlsApplicationProtocolFeature, ISslStreamFeature, IKtlsFeature
{
    private X509Certificate2? _certificate;
    private Task<X509Certificate2?>? _certificateAsked;

    public X509Certificate2? ClientCertificate
    {
        get => _certificate ??= stream.RemoteCertificate is { } shown ? EndpointOptions.AsCertificate2(shown) : null;
        set
        {
            _certificate = value;
            _certificateAsked = Task.FromResult(value);
        }
    }

    public SslProtocols Protocol => stream.SslProtocol;

    public TlsCipherSuite? NegotiatedCipherSuite => stream.NegotiatedCipherSuite;

    public string HostName => stream.TargetHostName;

    public ReadOnlyMemory<byte> ApplicationProtocol => stream.NegotiatedApplicationProtocol.Protocol;

    public SslStream SslStream => stream;

    public KtlsOffload Offload => stream.Offload;

#pragma warning disable SYSLIB0058 // Members of an interface that the application may still ask.
    public CipherAlgorithmType CipherAlgorithm => stream.CipherAlgorithm;

    public int CipherStrength => stream.CipherStrength;

    public HashAlgorithmType HashAlgorithm => stream.HashAlgorithm;

    public int HashStrength => stream.HashStrength;

    public ExchangeAlgorithmType KeyExchangeAlgorithm => stream.KeyExchangeAlgorithm;

    public int KeyExchangeStrength => stream.KeyExchangeStrength;
#pragma warning restore SYSLIB0058

    /// <summary>Asks once, where the endpoint allows it: not under HTTP/2 (RFC 9113, section 9.2.3).</summary>
    public Task<X509Certificate2?> GetClientCertificateAsync(CancellationToken cancellationToken) =>
        _certificateAsked ??=
            ClientCertificate is not null
            || !allowsDelayedCertificate
            || stream.NegotiatedApplicationProtocol == SslApplicationProtocol.Http2
                ? Task.FromResult(ClientCertificate)
                : NegotiateAsync(cancellationToken);

    private async Task<X509Certificate2?> NegotiateAsync(CancellationToken cancellationToken)
    {
        try
        {
            await stream.NegotiateClientCertificateAsync(cancellationToken).ConfigureAwait(false);
        }
        catch
        {
            // The request may be answered; no other follows on this connection.
            connection.Features.Get<IConnectionLifetimeNotificationFeature>()?.RequestClose();
            throw;
        }

        return ClientCertificate;
    }
}

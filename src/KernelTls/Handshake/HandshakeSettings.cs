using System.Net.Security;
using System.Security.Cryptography.X509Certificates;
using KernelTls.Interop;
using KernelTls.Offload;

namespace KernelTls.Handshake;

/// <summary>Authentication options in the form that the handshake needs: validated, normalized, eligible for OpenSSL on the socket.</summary>
internal sealed record HandshakeSettings
{
    public required bool IsServer { get; init; }

    /// <summary>What shapes the SSL_CTX; equal values may share one.</summary>
    public required TlsContextKey Context { get; init; }

    /// <summary>What the kernel is asked for.</summary>
    public KernelRequest Kernel { get; init; }

    /// <summary>Client: the normalized name that the certificate must match; empty for none. Server: empty.</summary>
    public string TargetHost { get; init; } = "";

    /// <summary>Client: the name as it was given, which is the one that SslStream publishes.</summary>
    public string GivenHost { get; init; } = "";

    /// <summary>Client: the SNI to send (RFC 6066, section 3), <see langword="null"/> for none, as for IP addresses.</summary>
    public string? ServerName { get; init; }

    /// <summary>Client: a certificate for another name is an error.</summary>
    public bool CheckName { get; init; }

    /// <summary>The user's judge of the peer's certificate.</summary>
    public RemoteCertificateValidationCallback? ValidationCallback { get; init; }

    /// <summary>The user's chain policy; overrules <see cref="RevocationMode"/> and <see cref="Trust"/>.</summary>
    public X509ChainPolicy? ChainPolicy { get; init; }

    public X509RevocationMode RevocationMode { get; init; }

    /// <summary>The trust list of the own certificate's context: the only roots for the peer's.</summary>
    public CertificateTrust? Trust { get; init; }

    /// <summary>A peer without a certificate is an error: clients always, servers where the options say so.</summary>
    public bool PeerCertificateRequired { get; init; }

    /// <summary>Client: sessions are offered and kept.</summary>
    public bool Resumes { get; init; }

    /// <summary>Client: a resumed session's chain is judged anew, whatever is known of it.</summary>
    public bool Revalidates { get; init; }

    /// <summary>Client: chooses the certificate when the server asks; <see langword="null"/> where it is chosen already.</summary>
    public ClientCertificateSelector? CertificateSelector { get; init; }

    /// <summary>Server: these settings serve only to receive the ClientHello, and this finds those to answer it with.</summary>
    public ServerSelection? Selection { get; init; }

    /// <summary>Own certificate, sent when asked for (client) or always (server).</summary>
    public SslStreamCertificateContext? Certificate => Context.Certificate;
}

/// <summary>Finds a server's settings once the ClientHello is known.</summary>
/// <returns><see langword="null"/>: no certificate for this client.</returns>
internal delegate ValueTask<HandshakeSettings?> ServerSelection(SslClientHelloInfo clientHello, CancellationToken cancellationToken);

/// <summary>Everything that shapes an SSL_CTX. Certificates count by identity of their context object. Version 0 and lists that are null: SslStream's defaults.</summary>
internal sealed record TlsContextKey(
    bool IsServer,
    ContextFlags Flags,
    int MinVersion,
    int MaxVersion,
    string? CipherList,
    string? CipherSuites,
    string Alpn,
    string? SignatureAlgorithms,
    SslStreamCertificateContext? Certificate);

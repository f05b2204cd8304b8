using System.Net.Security;
using System.Security.Cryptography.X509Certificates;
using KernelTls.Interop;
using KernelTls.Offload;

namespace KernelTls.Handshake;

/// <summary>
/// Contains authentication options in the form that the handshake needs: validated, normalized, and supported by
/// OpenSSL on the socket.
/// </summary>
internal sealed record HandshakeSettings
{
    public required bool IsServer { get; init; }

    /// <summary>Gets the key of the SSL_CTX. Connections with equal keys may share one.</summary>
    public required TlsContextKey Context { get; init; }

    /// <summary>Gets the request to the kernel.</summary>
    public KernelRequest Kernel { get; init; }

    /// <summary>
    /// Client: gets the normalized name that the certificate must match, or an empty string for none. Server: empty.
    /// </summary>
    public string TargetHost { get; init; } = "";

    /// <summary>Client: gets the name as given by the caller, which is the name that SslStream publishes.</summary>
    public string GivenHost { get; init; } = "";

    /// <summary>
    /// Client: gets the SNI to send (RFC 6066, section 3), or <see langword="null"/> for none, as for IP addresses.
    /// </summary>
    public string? ServerName { get; init; }

    /// <summary>Client: gets a value that indicates whether a certificate for another name is an error.</summary>
    public bool CheckName { get; init; }

    /// <summary>Gets the application's callback that validates the peer's certificate.</summary>
    public RemoteCertificateValidationCallback? ValidationCallback { get; init; }

    /// <summary>
    /// Gets the application's chain policy. It overrides <see cref="RevocationMode"/> and <see cref="Trust"/>.
    /// </summary>
    public X509ChainPolicy? ChainPolicy { get; init; }

    public X509RevocationMode RevocationMode { get; init; }

    /// <summary>
    /// Gets the trust list of the local certificate's context: the only accepted roots for the peer's chain.
    /// </summary>
    public CertificateTrust? Trust { get; init; }

    /// <summary>
    /// Gets a value that indicates whether a peer without a certificate is an error: always for clients, by option for
    /// servers.
    /// </summary>
    public bool PeerCertificateRequired { get; init; }

    /// <summary>Client: gets a value that indicates whether sessions are offered and stored.</summary>
    public bool Resumes { get; init; }

    /// <summary>
    /// Client: gets a value that indicates whether the chain of a resumed session is always validated again.
    /// </summary>
    public bool Revalidates { get; init; }

    /// <summary>
    /// Client: gets the selector to call when the server requests a certificate, or <see langword="null"/> if the
    /// certificate is already selected.
    /// </summary>
    public ClientCertificateSelector? CertificateSelector { get; init; }

    /// <summary>
    /// Server: gets the callback that selects the actual settings. If it is set, these settings only serve to receive
    /// the ClientHello.
    /// </summary>
    public ServerSelection? Selection { get; init; }

    /// <summary>
    /// Client: gets a value that indicates whether the server may request the certificate after the handshake (RFC
    /// 8446, section 4.6.2).
    /// </summary>
    public bool AnswersCertificateRequests => !IsServer && Context.Flags.HasFlag(ContextFlags.PostHandshakeAuth);

    /// <summary>Gets the local certificate. A client sends it on request, a server always.</summary>
    public SslStreamCertificateContext? Certificate => Context.Certificate;
}

/// <summary>Selects a server's settings when the ClientHello has been received.</summary>
/// <returns>The settings, or <see langword="null"/> if there is no certificate for this client.</returns>
internal delegate ValueTask<HandshakeSettings?> ServerSelection(SslClientHelloInfo clientHello, CancellationToken cancellationToken);

/// <summary>Contains everything that configures an SSL_CTX.</summary>
/// <remarks>
/// Certificates are compared by identity of their context object. Version 0 and null lists stand for SslStream's
/// defaults.
/// </remarks>
internal sealed record TlsContextKey(
    bool IsServer,
    ContextFlags Flags,
    int MinVersion,
    int MaxVersion,
    string? CipherList,
    string? CipherSuites,
    string Alpn,
    string? SignatureAlgorithms,
    SslStreamCertificateContext? Certificate)
{
    // The compiler's members, and HashCode, would use generic code that is not compiled ahead of time.
    public bool Equals(TlsContextKey? other) =>
        other is not null && IsServer == other.IsServer && Flags == other.Flags
        && MinVersion == other.MinVersion && MaxVersion == other.MaxVersion
        && CipherList == other.CipherList && CipherSuites == other.CipherSuites
        && Alpn == other.Alpn && SignatureAlgorithms == other.SignatureAlgorithms && Certificate == other.Certificate;

    public override int GetHashCode() =>
        (((((int)Flags * 31) + MinVersion) * 31 + MaxVersion) * 31 + Alpn.GetHashCode()) * 31 + (Certificate?.GetHashCode() ?? 0);
}

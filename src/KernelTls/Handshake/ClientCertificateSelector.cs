using System.Net.Security;
using System.Security.Cryptography.X509Certificates;

namespace KernelTls.Handshake;

/// <summary>Selects a client's certificate in the same way and at the same times as SslStream on Linux.</summary>
/// <remarks>
/// The selection runs once before the handshake. If the callback returned no certificate, it is called once more when
/// the server requests one and the server's certificate and acceptable issuers are known. Without a callback the first
/// certificate of the collection is used.
/// </remarks>
internal sealed class ClientCertificateSelector(
    object sender, string targetHost, X509CertificateCollection? certificates, LocalCertificateSelectionCallback? callback)
{
    private readonly X509CertificateCollection _certificates = certificates ?? [];

    /// <summary>
    /// Gets a value that indicates whether there is a callback, which may return another certificate when the server
    /// requests one.
    /// </summary>
    public bool MayChooseLater => callback is not null;

    /// <summary>
    /// Selects the certificate before the handshake. Returns <see langword="null"/> if there is none, or none with a
    /// private key.
    /// </summary>
    public SslStreamCertificateContext? SelectFirst() => LocalCertificates.ContextOf(callback is not null
        ? callback(sender, targetHost, _certificates, null, [])
        : _certificates.Count > 0 ? _certificates[0] : null);

    /// <summary>Calls the callback again, when the server requests a certificate.</summary>
    public SslStreamCertificateContext? Select(X509Certificate2? remoteCertificate, string[] acceptableIssuers)
    {
        // A copy, because the callback may dispose it.
        using X509Certificate2? copy = remoteCertificate is null ? null : new X509Certificate2(remoteCertificate);
        return LocalCertificates.ContextOf(callback!(sender, targetHost, _certificates, copy, acceptableIssuers));
    }
}

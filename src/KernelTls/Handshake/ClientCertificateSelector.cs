using System.Net.Security;
using System.Security.Cryptography.X509Certificates;

namespace KernelTls.Handshake;

/// <summary>Selects a client's certificate in the same way and at the same times as SslStream on Linux.</summary>
/// <remarks>
/// The selection runs once before the handshake. If the callback returned no certificate, it is called once more when
/// the server first requests one, in the handshake or after it, and the server's certificate and acceptable issuers are
/// known. Without a callback the first certificate of the collection is used.
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
    /// Gets a value that indicates whether there is a callback or a certificate, even one without a private key.
    /// </summary>
    public bool MayHaveCertificate => MayChooseLater || _certificates.Count > 0;

    /// <summary>
    /// Selects the certificate before the handshake. Returns <see langword="null"/> if there is none, or none with a
    /// private key.
    /// </summary>
    public SslStreamCertificateContext? SelectFirst() => LocalCertificates.ContextOf(callback is not null
        ? callback(sender, targetHost, _certificates, null, [])
        : _certificates.Count > 0 ? _certificates[0] : null);

    /// <summary>Calls the callback again, when the server requests a certificate.</summary>
    /// <param name="remoteCertificate">The server's certificate.</param>
    /// <param name="acceptableIssuers">The names in DER of the issuers that the server accepts.</param>
    public SslStreamCertificateContext? Select(X509Certificate2? remoteCertificate, List<byte[]> acceptableIssuers)
    {
        string[] issuers = [.. acceptableIssuers.Select(n => new X500DistinguishedName(n).Name)];

        // A copy, because the callback may dispose it.
        using X509Certificate2? copy = remoteCertificate is null ? null : new X509Certificate2(remoteCertificate);
        return LocalCertificates.ContextOf(callback!(sender, targetHost, _certificates, copy, issuers));
    }
}

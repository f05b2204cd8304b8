using System.Net.Security;
using System.Security.Cryptography.X509Certificates;

namespace KernelTls.Handshake;

/// <summary>
/// Chooses a client's certificate when and as SslStream on Linux does: once before the handshake, and by the callback once
/// more, if that gave none, when the server asks and its certificate and issuers are known. Of a collection it is always the
/// first one.
/// </summary>
internal sealed class ClientCertificateSelector(
    object sender, string targetHost, X509CertificateCollection? certificates, LocalCertificateSelectionCallback? callback)
{
    private readonly X509CertificateCollection _certificates = certificates ?? [];

    /// <summary>There is a callback, which may have another answer when the server asks.</summary>
    public bool MayChooseLater => callback is not null;

    /// <summary>Before the handshake. <see langword="null"/> for none, or none with a key.</summary>
    public SslStreamCertificateContext? SelectFirst() => OwnCertificates.ContextOf(callback is not null
        ? callback(sender, targetHost, _certificates, null, [])
        : _certificates.Count > 0 ? _certificates[0] : null);

    /// <summary>The server asks: the callback is called again.</summary>
    public SslStreamCertificateContext? Select(X509Certificate2? remoteCertificate, string[] acceptableIssuers)
    {
        // A certificate of its own: the callback may dispose it.
        using X509Certificate2? copy = remoteCertificate is null ? null : new X509Certificate2(remoteCertificate);
        return OwnCertificates.ContextOf(callback!(sender, targetHost, _certificates, copy, acceptableIssuers));
    }
}

using System.Net.Security;
using System.Security.Cryptography.X509Certificates;

namespace KernelTls.Handshake;

/// <summary>
/// Chooses a client's certificate from a collection or by callback, when and as SslStream does: once before the handshake,
/// and once more, if that gave none, when the server asks and its certificate and issuers are known.
/// </summary>
internal sealed class ClientCertificateSelector(
    object sender, string targetHost, X509CertificateCollection? certificates, LocalCertificateSelectionCallback? callback)
{
    private readonly X509CertificateCollection _certificates = certificates ?? [];

    /// <summary>Whether the callback decides: its choice may differ from one connection to the next.</summary>
    public bool HasCallback => callback is not null;

    /// <summary>Before the handshake: the callback's choice, or the first of the collection. <see langword="null"/> for none, or none with a key.</summary>
    public SslStreamCertificateContext? SelectFirst() => OwnCertificates.ContextOf(callback is not null
        ? callback(sender, targetHost, _certificates, null, [])
        : _certificates.Count > 0 ? _certificates[0] : null);

    /// <summary>The server asks: the callback's choice, or the first with a key that leads to one of the issuers.</summary>
    public SslStreamCertificateContext? Select(X509Certificate2? remoteCertificate, string[] acceptableIssuers)
    {
        if (callback is not null)
        {
            // A certificate of its own, as SslStream gives: the callback may keep or dispose it.
            using X509Certificate2? copy = remoteCertificate is null ? null : new X509Certificate2(remoteCertificate);
            return OwnCertificates.ContextOf(callback(sender, targetHost, _certificates, copy, acceptableIssuers));
        }

        foreach (X509Certificate certificate in _certificates)
        {
            if ((acceptableIssuers.Length == 0 || LeadsTo(certificate, acceptableIssuers)) &&
                OwnCertificates.ContextOf(certificate) is { } context)
            {
                return context;
            }
        }

        return null;
    }

    private static bool LeadsTo(X509Certificate certificate, string[] issuers)
    {
        using X509Certificate2 leaf = new(certificate);
        using X509Chain chain = new();
        chain.ChainPolicy.RevocationMode = X509RevocationMode.NoCheck;
        chain.ChainPolicy.VerificationFlags = X509VerificationFlags.IgnoreInvalidName;
        _ = chain.Build(leaf);
        try
        {
            return chain.ChainElements.Any(e => issuers.Contains(e.Certificate.Issuer, StringComparer.Ordinal));
        }
        finally
        {
            foreach (X509ChainElement element in chain.ChainElements)
            {
                element.Certificate.Dispose();
            }
        }
    }
}

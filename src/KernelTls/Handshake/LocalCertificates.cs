using System.Net.Security;
using System.Runtime.CompilerServices;
using System.Security.Cryptography;
using System.Security.Cryptography.X509Certificates;
using KernelTls.Interop;

namespace KernelTls.Handshake;

/// <summary>
/// Finds the private key of a certificate and creates the context with which it can be sent. Thread-safe.
/// </summary>
/// <remarks>
/// Searches for the private key in the same places as SslStream. Creating the context builds a chain to find the
/// intermediate certificates to send. That happens once per certificate object; the result lives as long as the object.
/// </remarks>
internal static class LocalCertificates
{
    // The runtime's own switch: servers with a bare certificate fetch an OCSP response for stapling.
    private const string FetchOcspSwitch = "System.Net.Security.EnableServerOcspStaplingFromOnlyCertificateOnLinux";

    private static readonly ConditionalWeakTable<X509Certificate2, SslStreamCertificateContext> s_contexts = [];
    private static readonly ConditionalWeakTable<X509Certificate2, SslStreamCertificateContext> s_stapling = [];
    private static readonly ConditionalWeakTable<X509Certificate, X509Certificate2> s_withKeys = [];

    /// <summary>
    /// Returns the context of a certificate, or <see langword="null"/> if no private key is found for it.
    /// </summary>
    public static SslStreamCertificateContext? ContextOf(X509Certificate? certificate)
    {
        X509Certificate2? own = FindWithPrivateKey(certificate);
        return own is null ? null : s_contexts.GetValue(own, static c => RuntimeInternals.CreateCertificateContext(c, fetchOcsp: false));
    }

    /// <summary>
    /// Returns the context of a server's configured certificate, which may be stapled. Otherwise as
    /// <see cref="ContextOf"/>.
    /// </summary>
    public static SslStreamCertificateContext? ServerContextOf(X509Certificate? certificate) =>
        FindWithPrivateKey(certificate) is { } own && AppContext.TryGetSwitch(FetchOcspSwitch, out bool fetch) && fetch
            ? s_stapling.GetValue(own, static c => RuntimeInternals.CreateCertificateContext(c, fetchOcsp: true))
            : ContextOf(certificate);

    /// <summary>
    /// Returns the certificate as an X509Certificate2 if it has a private key, and otherwise the matching one with a
    /// private key in the user's store.
    /// </summary>
    private static X509Certificate2? FindWithPrivateKey(X509Certificate? certificate)
    {
        if (certificate is null or X509Certificate2 { HasPrivateKey: true })
        {
            return (X509Certificate2?)certificate;
        }

        if (s_withKeys.TryGetValue(certificate, out X509Certificate2? known))
        {
            return known;
        }

        X509Certificate2? found = certificate is X509Certificate2 ? null : FindInBaseType(certificate);
        found ??= FindInStore(certificate);
        return found is null ? null : s_withKeys.GetValue(certificate, _ => found);
    }

    /// <summary>
    /// Returns a certificate with a private key. An X509Certificate may hold one, but has no member that shows it.
    /// </summary>
    private static X509Certificate2? FindInBaseType(X509Certificate certificate)
    {
        try
        {
            X509Certificate2 copy = new(certificate);
            if (copy.HasPrivateKey)
            {
                return copy;
            }

            copy.Dispose();
            return null;
        }
        catch (CryptographicException)
        {
            // The certificate cannot be read, for example because it is empty. It counts as one without a key, as in
            // SslStream.
            return null;
        }
    }

    private static X509Certificate2? FindInStore(X509Certificate certificate)
    {
        try
        {
            using X509Store store = new(StoreName.My, StoreLocation.CurrentUser, OpenFlags.ReadOnly);
            X509Certificate2Collection stored = store.Certificates;
            X509Certificate2? found = stored
                .FindByThumbprint(HashAlgorithmName.SHA512, certificate.GetCertHash(HashAlgorithmName.SHA512))
                .FirstOrDefault(c => c.HasPrivateKey);
            foreach (X509Certificate2 other in stored)
            {
                if (!ReferenceEquals(other, found))
                {
                    other.Dispose();
                }
            }

            return found;
        }
        catch (CryptographicException)
        {
            // The store is missing or the certificate cannot be read. It counts as one without a key, as in SslStream.
            return null;
        }
    }
}

using System.Net.Security;
using System.Runtime.CompilerServices;
using System.Security.Cryptography;
using System.Security.Cryptography.X509Certificates;
using KernelTls.Interop;

namespace KernelTls.Handshake;

/// <summary>
/// From a bare certificate to one that can be shown: its private key is looked for where SslStream looks, and a context is
/// made, which builds a chain to find the intermediates to send. That is done once per certificate object, and forgotten
/// with it. Thread-safe.
/// </summary>
internal static class OwnCertificates
{
    // The runtime's own switch: servers given a bare certificate fetch an OCSP response to staple.
    private const string FetchOcspSwitch = "System.Net.Security.EnableServerOcspStaplingFromOnlyCertificateOnLinux";

    private static readonly ConditionalWeakTable<X509Certificate2, SslStreamCertificateContext> s_contexts = [];
    private static readonly ConditionalWeakTable<X509Certificate2, SslStreamCertificateContext> s_stapling = [];
    private static readonly ConditionalWeakTable<X509Certificate, X509Certificate2> s_withKeys = [];

    /// <summary><see langword="null"/> where no private key is found for the certificate.</summary>
    public static SslStreamCertificateContext? ContextOf(X509Certificate? certificate)
    {
        X509Certificate2? own = FindWithPrivateKey(certificate);
        return own is null ? null : s_contexts.GetValue(own, static c => RuntimeInternals.CreateCertificateContext(c, fetchOcsp: false));
    }

    /// <summary>As <see cref="ContextOf"/>, for a server's configured certificate, which may be stapled.</summary>
    public static SslStreamCertificateContext? ServerContextOf(X509Certificate? certificate) =>
        FindWithPrivateKey(certificate) is { } own && AppContext.TryGetSwitch(FetchOcspSwitch, out bool fetch) && fetch
            ? s_stapling.GetValue(own, static c => RuntimeInternals.CreateCertificateContext(c, fetchOcsp: true))
            : ContextOf(certificate);

    /// <summary>
    /// The certificate itself where it has its key, by the type that shows it; else the one in the user's store that is the same
    /// and has it.
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

    /// <summary>An X509Certificate may hold a key and has no member that says so.</summary>
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
            // A certificate that cannot be read, such as an empty one: no key, as in SslStream.
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
            // No store, or a certificate that cannot be read: no key, as in SslStream.
            return null;
        }
    }
}

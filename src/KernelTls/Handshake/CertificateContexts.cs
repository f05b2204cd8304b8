using System.Net.Security;
using System.Runtime.CompilerServices;
using System.Security.Cryptography.X509Certificates;

namespace KernelTls.Handshake;

/// <summary>
/// Certificate contexts for certificates that were given bare. Building one builds a chain to find the intermediates to send:
/// done once per certificate object, and forgotten with it.
/// </summary>
internal static class CertificateContexts
{
    private static readonly ConditionalWeakTable<X509Certificate2, SslStreamCertificateContext> s_contexts = [];

    /// <summary><see langword="null"/> where the certificate carries no private key: the base class may find one elsewhere.</summary>
    public static SslStreamCertificateContext? Get(X509Certificate? certificate) =>
        certificate is X509Certificate2 { HasPrivateKey: true } own
            ? s_contexts.GetValue(own, static c => SslStreamCertificateContext.Create(c, additionalCertificates: null))
            : null;
}

using System.Runtime.InteropServices;
using System.Security.Cryptography;
using System.Security.Cryptography.X509Certificates;

namespace KernelTls.Handshake;

/// <summary>A certificate's private key as OpenSSL's own object. The key never leaves OpenSSL, exportable or not.</summary>
internal static class PrivateKey
{
    private const string RsaOid = "1.2.840.113549.1.1.1";
    private const string EcOid = "1.2.840.10045.2.1";

    /// <summary>A cheap look; <see cref="TryOpen"/> has the last word.</summary>
    public static bool IsUsable(X509Certificate2 certificate) =>
        certificate.HasPrivateKey && certificate.GetKeyAlgorithm() is RsaOid or EcOid;

    /// <summary>A new reference to the EVP_PKEY, or <see langword="null"/> where the key is not held by OpenSSL.</summary>
    public static SafeHandle? TryOpen(X509Certificate2 certificate)
    {
        if (!OperatingSystem.IsLinux())
        {
            return null;
        }

        using RSA? rsa = certificate.GetRSAPrivateKey();
        if (rsa is RSAOpenSsl openSslRsa)
        {
            return openSslRsa.DuplicateKeyHandle();
        }

        using ECDsa? ecdsa = certificate.GetECDsaPrivateKey();
        return ecdsa is ECDsaOpenSsl openSslEcdsa ? openSslEcdsa.DuplicateKeyHandle() : null;
    }
}

using System.Security.Cryptography;
using System.Security.Cryptography.X509Certificates;

namespace KernelTls.LoadTest.Tls;

/// <summary>
/// Creates an untrusted certificate with a 2048-bit RSA key, as in the reference scenarios. The clients accept
/// any certificate.
/// </summary>
internal static class UntrustedCertificate
{
    public static X509Certificate2 Create()
    {
        using RSA key = RSA.Create(2048);
        using X509Certificate2 certificate =
            SelfSigned.Create(new CertificateRequest("CN=localhost", key, HashAlgorithmName.SHA256, RSASignaturePadding.Pkcs1));

        // Load the certificate in the same way as an application.
        return X509CertificateLoader.LoadPkcs12(certificate.Export(X509ContentType.Pkcs12), password: null);
    }
}

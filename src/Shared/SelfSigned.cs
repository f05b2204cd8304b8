using System.Net;
using System.Security.Cryptography;
using System.Security.Cryptography.X509Certificates;

namespace KernelTls;

/// <summary>
/// Creates a certificate for localhost whose key only this process knows. It is for experiments: browsers warn about
/// it.
/// </summary>
internal static class SelfSigned
{
    private const string ServerAuthentication = "1.3.6.1.5.5.7.3.1";

    public static X509Certificate2 Create(out X509Certificate2Collection chain)
    {
        chain = [];
        return Create();
    }

    public static X509Certificate2 Create()
    {
        using ECDsa key = ECDsa.Create(ECCurve.NamedCurves.nistP256);
        return Create(new CertificateRequest("CN=localhost", key, HashAlgorithmName.SHA256));
    }

    /// <summary>Creates a certificate for localhost with the subject and the key of the request.</summary>
    public static X509Certificate2 Create(CertificateRequest request)
    {
        SubjectAlternativeNameBuilder names = new();
        names.AddDnsName("localhost");
        names.AddIpAddress(IPAddress.Loopback);
        names.AddIpAddress(IPAddress.IPv6Loopback);
        request.CertificateExtensions.Add(names.Build());
        request.CertificateExtensions.Add(new X509BasicConstraintsExtension(false, false, 0, critical: true));
        request.CertificateExtensions.Add(new X509EnhancedKeyUsageExtension([new Oid(ServerAuthentication)], critical: false));
        DateTimeOffset now = DateTimeOffset.UtcNow;
        return request.CreateSelfSigned(now.AddDays(-1), now.AddDays(30));
    }
}

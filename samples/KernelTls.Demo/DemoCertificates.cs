using System.Net;
using System.Security.Cryptography;
using System.Security.Cryptography.X509Certificates;

namespace KernelTls.Demo;

/// <summary>
/// Creates a temporary certificate authority and a certificate for localhost. The keys stay in this process. The
/// authority's certificate, which other programs need, is in a temporary directory until this object is disposed.
/// </summary>
internal sealed class DemoCertificates : IDisposable
{
    private static readonly TimeSpan s_lifetime = TimeSpan.FromDays(1);
    private static readonly TimeSpan s_clockSkew = TimeSpan.FromHours(1);

    private readonly X509Certificate2 _authority;
    private readonly DirectoryInfo _directory;

    public DemoCertificates()
    {
        using ECDsa authorityKey = ECDsa.Create(ECCurve.NamedCurves.nistP256);
        _authority = MakeAuthority(authorityKey);
        Server = MakeServer(_authority);
        _directory = Directory.CreateTempSubdirectory("kerneltls-demo-");
        AuthorityFile = Path.Combine(_directory.FullName, "authority.pem");
        File.WriteAllText(AuthorityFile, _authority.ExportCertificatePem());
    }

    public X509Certificate2 Server { get; }

    /// <summary>Gets the path of the authority's certificate in PEM.</summary>
    public string AuthorityFile { get; }

    /// <summary>Gets the policy that trusts only this authority. Its certificates name no revocation list.</summary>
    public X509ChainPolicy CreateTrust() => new()
    {
        TrustMode = X509ChainTrustMode.CustomRootTrust,
        CustomTrustStore = { _authority },
        RevocationMode = X509RevocationMode.NoCheck,
        VerificationFlags = X509VerificationFlags.NoFlag,
    };

    public void Dispose()
    {
        _directory.Delete(recursive: true);
        Server.Dispose();
        _authority.Dispose();
    }

    private static X509Certificate2 MakeAuthority(ECDsa key)
    {
        CertificateRequest request = new("CN=KernelTls demo authority", key, HashAlgorithmName.SHA256);
        request.CertificateExtensions.Add(
            new X509BasicConstraintsExtension(certificateAuthority: true, hasPathLengthConstraint: true, pathLengthConstraint: 0, critical: true));
        request.CertificateExtensions.Add(
            new X509KeyUsageExtension(X509KeyUsageFlags.KeyCertSign | X509KeyUsageFlags.CrlSign, critical: true));
        request.CertificateExtensions.Add(new X509SubjectKeyIdentifierExtension(request.PublicKey, critical: false));
        DateTimeOffset now = DateTimeOffset.UtcNow;
        return request.CreateSelfSigned(now - s_clockSkew, now + s_lifetime);
    }

    private static X509Certificate2 MakeServer(X509Certificate2 authority)
    {
        using ECDsa key = ECDsa.Create(ECCurve.NamedCurves.nistP256);
        CertificateRequest request = new("CN=localhost", key, HashAlgorithmName.SHA256);
        SubjectAlternativeNameBuilder names = new();
        names.AddDnsName("localhost");
        names.AddIpAddress(IPAddress.Loopback);
        request.CertificateExtensions.Add(names.Build());
        request.CertificateExtensions.Add(
            new X509BasicConstraintsExtension(certificateAuthority: false, hasPathLengthConstraint: false, pathLengthConstraint: 0, critical: true));
        request.CertificateExtensions.Add(new X509KeyUsageExtension(X509KeyUsageFlags.DigitalSignature, critical: true));
        request.CertificateExtensions.Add(
            new X509EnhancedKeyUsageExtension([new Oid("1.3.6.1.5.5.7.3.1", "serverAuth")], critical: false));
        request.CertificateExtensions.Add(
            X509AuthorityKeyIdentifierExtension.CreateFromCertificate(authority, includeKeyIdentifier: true, includeIssuerAndSerial: false));

        DateTimeOffset now = DateTimeOffset.UtcNow;
        byte[] serial = RandomNumberGenerator.GetBytes(16);
        serial[0] &= 0x7F;
        using X509Certificate2 certificate =
            request.Create(authority, now - s_clockSkew, authority.NotAfter.ToUniversalTime(), serial);
        return certificate.CopyWithPrivateKey(key);
    }
}

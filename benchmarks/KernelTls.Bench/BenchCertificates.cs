using System.Net.Security;
using System.Security.Cryptography;
using System.Security.Cryptography.X509Certificates;

namespace KernelTls.Bench;

/// <summary>
/// Represents a certificate authority and a certificate for localhost that it signed. Both use ECDSA P-256. A process of
/// the benchmark creates them.
/// </summary>
internal sealed class BenchCertificates
{
    public const string Host = "localhost";

    private readonly X509Certificate2 _authority;

    /// <param name="mutual">Whether clients have a certificate, too, which servers then require.</param>
    public BenchCertificates(bool mutual = false)
    {
        ECDsa authorityKey = ECDsa.Create(ECCurve.NamedCurves.nistP256);
        CertificateRequest request = new("CN=KernelTls bench authority", authorityKey, HashAlgorithmName.SHA256);
        request.CertificateExtensions.Add(
            new X509BasicConstraintsExtension(certificateAuthority: true, hasPathLengthConstraint: false, pathLengthConstraint: 0, critical: true));
        request.CertificateExtensions.Add(new X509KeyUsageExtension(X509KeyUsageFlags.KeyCertSign, critical: true));
        _authority = request.CreateSelfSigned(DateTimeOffset.UtcNow.AddDays(-2), DateTimeOffset.UtcNow.AddDays(2));
        Server = Sign(_authority, "1.3.6.1.5.5.7.3.1", "serverAuth");
        ServerContext = SslStreamCertificateContext.Create(Server, additionalCertificates: null, offline: true);
        ClientContext = mutual
            ? SslStreamCertificateContext.Create(Sign(_authority, "1.3.6.1.5.5.7.3.2", "clientAuth"), additionalCertificates: null, offline: true)
            : null;
    }

    private BenchCertificates(X509Certificate2 authority, X509Certificate2 server)
    {
        _authority = authority;
        Server = server;
        ServerContext = SslStreamCertificateContext.Create(Server, additionalCertificates: null, offline: true);
    }

    public X509Certificate2 Server { get; }

    public SslStreamCertificateContext ServerContext { get; }

    /// <summary>Gets the client's certificate, or null if servers do not request one.</summary>
    public SslStreamCertificateContext? ClientContext { get; }

    public static string AuthorityPathIn(string directory) => Path.Combine(directory, "authority.pem");

    public static string PathIn(string directory) => Path.Combine(directory, "server.pem");

    public static string KeyPathIn(string directory) => Path.Combine(directory, "server.key");

    /// <summary>Reads the certificates that <see cref="WriteTo"/> of another process wrote.</summary>
    public static BenchCertificates ReadFrom(string directory)
    {
        X509Certificate2 server = X509Certificate2.CreateFromPemFile(PathIn(directory), KeyPathIn(directory));
        return new BenchCertificates(X509CertificateLoader.LoadCertificateFromFile(AuthorityPathIn(directory)), server);
    }

    /// <summary>Writes the certificates for servers and clients in separate processes.</summary>
    public void WriteTo(string directory)
    {
        using ECDsa key = Server.GetECDsaPrivateKey()!;
        File.WriteAllText(AuthorityPathIn(directory), _authority.ExportCertificatePem());
        File.WriteAllText(PathIn(directory), Server.ExportCertificatePem());
        File.WriteAllText(KeyPathIn(directory), key.ExportPkcs8PrivateKeyPem());
    }

    /// <summary>
    /// Creates a chain policy that trusts only this authority. Every mode validates the server's certificate with it.
    /// </summary>
    public X509ChainPolicy CreateTrust() => new()
    {
        TrustMode = X509ChainTrustMode.CustomRootTrust,
        CustomTrustStore = { _authority },
        RevocationMode = X509RevocationMode.NoCheck,
        DisableCertificateDownloads = true,
    };

    private static X509Certificate2 Sign(X509Certificate2 authority, string usage, string usageName)
    {
        using ECDsa key = ECDsa.Create(ECCurve.NamedCurves.nistP256);
        CertificateRequest request = new($"CN={Host}", key, HashAlgorithmName.SHA256);
        SubjectAlternativeNameBuilder names = new();
        names.AddDnsName(Host);
        request.CertificateExtensions.Add(names.Build());
        request.CertificateExtensions.Add(new X509KeyUsageExtension(X509KeyUsageFlags.DigitalSignature, critical: true));
        request.CertificateExtensions.Add(
            new X509EnhancedKeyUsageExtension([new Oid(usage, usageName)], critical: false));
        using X509Certificate2 certificate = request.Create(
            authority, DateTimeOffset.UtcNow.AddDays(-1), DateTimeOffset.UtcNow.AddDays(1), RandomNumberGenerator.GetBytes(8));
        return certificate.CopyWithPrivateKey(key);
    }
}

using System.Net.Security;
using System.Security.Cryptography;
using System.Security.Cryptography.X509Certificates;
using KernelTls.Tests;

namespace KernelTls.Bench;

/// <summary>
/// Represents the test authority and a certificate for localhost that it signed, both with ECDSA P-256. A process of the benchmark creates
/// them.
/// </summary>
internal sealed class BenchCertificates
{
    public const string Host = "localhost";

    private readonly X509Certificate2 _authority;

    /// <param name="mutual">Whether clients have a certificate, too, which servers then require.</param>
    public BenchCertificates(bool mutual = false)
        : this(Certificates.Authority, Certificates.Ecdsa) =>
        ClientContext = mutual ? Certificates.ClientContext : null;

    private BenchCertificates(X509Certificate2 authority, X509Certificate2 server)
    {
        _authority = authority;
        Server = server;
        ServerContext = Certificates.Context(server);
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
}

using System.Net;
using System.Net.Security;
using System.Security.Cryptography;
using System.Security.Cryptography.X509Certificates;

namespace KernelTls.Tests;

/// <summary>
/// Provides certificates created in the process: a test authority and those that it signed. Names are <c>localhost</c>
/// and 127.0.0.1.
/// </summary>
internal static partial class Certificates
{
    private static readonly Lazy<X509Certificate2> s_authority = new(() => SelfSign("KernelTls test authority", isAuthority: true));
    private static readonly Lazy<X509Certificate2> s_ecdsa = new(() => Sign(NewEcdsa("localhost"), "localhost"));
    private static readonly Lazy<X509Certificate2> s_rsa = new(() => SignRsa("localhost"));
    private static readonly Lazy<X509Certificate2> s_wrongName = new(() => Sign(NewEcdsa("elsewhere.test"), "elsewhere.test"));
    private static readonly Lazy<X509Certificate2> s_client = new(() => Sign(NewEcdsa("a client"), "client.test"));
    private static readonly Lazy<X509Certificate2> s_selfSigned = new(() => SelfSign("localhost", isAuthority: false));
    private static readonly Lazy<X509Certificate2> s_expired = new(() => Sign(
        NewEcdsa("localhost"), "localhost", DateTimeOffset.UtcNow.AddDays(-30), DateTimeOffset.UtcNow.AddDays(-2)));

    private static readonly Lazy<X509Certificate2> s_intermediate = new(() => MakeIntermediate("KernelTls test intermediate"));
    private static readonly Lazy<X509Certificate2> s_large =
        new(() => MakeIntermediate("KernelTls test large authority", new X509Extension("2.5.29.32.99", new byte[60_000], critical: false)));
    private static readonly Lazy<SslStreamCertificateContext> s_chained = new(() => SslStreamCertificateContext.Create(
        Sign(NewEcdsa("localhost"), "localhost", issuer: s_intermediate.Value), [s_intermediate.Value], offline: true));

    private static readonly Lazy<SslStreamCertificateContext> s_ecdsaContext = new(() => Context(Ecdsa));
    private static readonly Lazy<SslStreamCertificateContext> s_rsaContext = new(() => Context(Rsa));
    private static readonly Lazy<SslStreamCertificateContext> s_clientContext = new(() => Context(Client));

    public static X509Certificate2 Authority => s_authority.Value;

    public static X509Certificate2 Ecdsa => s_ecdsa.Value;

    public static X509Certificate2 Rsa => s_rsa.Value;

    public static X509Certificate2 Expired => s_expired.Value;

    public static X509Certificate2 WrongName => s_wrongName.Value;

    public static X509Certificate2 SelfSigned => s_selfSigned.Value;

    public static X509Certificate2 Client => s_client.Value;

    public static SslStreamCertificateContext EcdsaContext => s_ecdsaContext.Value;

    public static SslStreamCertificateContext RsaContext => s_rsaContext.Value;

    public static SslStreamCertificateContext ClientContext => s_clientContext.Value;

    /// <summary>Gets a leaf with its intermediate. Only a peer that receives both can build the chain.</summary>
    public static SslStreamCertificateContext ChainedContext => s_chained.Value;

    public static SslStreamCertificateContext Context(X509Certificate2 certificate) =>
        SslStreamCertificateContext.Create(certificate, additionalCertificates: null, offline: true);

    /// <summary>Returns the certificate without its key, as a peer receives it.</summary>
    public static X509Certificate2 WithoutKey(X509Certificate2 certificate) =>
        X509CertificateLoader.LoadCertificate(certificate.RawDataMemory.Span);

#pragma warning disable SYSLIB0057 // There is no other constructor of the base type.
    /// <summary>Returns the certificate without its key, as an X509Certificate.</summary>
    public static X509Certificate BaseType(X509Certificate2 certificate) => new(certificate.RawData);

    /// <summary>Returns the certificate with its key, as an X509Certificate.</summary>
    public static X509Certificate BaseTypeWithKey(X509Certificate2 certificate) => new(certificate.Export(X509ContentType.Pfx));
#pragma warning restore SYSLIB0057

    /// <summary>Returns a policy that trusts only the test authority.</summary>
    public static X509ChainPolicy Trust() => new()
    {
        TrustMode = X509ChainTrustMode.CustomRootTrust,
        CustomTrustStore = { Authority },
        RevocationMode = X509RevocationMode.NoCheck,
        DisableCertificateDownloads = true,
    };

    /// <summary>Writes the certificate and its key as PEM files for third-party programs.</summary>
    public static (string Certificate, string Key) WritePem(X509Certificate2 certificate, string directory)
    {
        string certificatePath = Path.Combine(directory, "certificate.pem");
        string keyPath = Path.Combine(directory, "key.pem");
        using ECDsa? ecdsa = certificate.GetECDsaPrivateKey();
        using RSA? rsa = certificate.GetRSAPrivateKey();
        File.WriteAllText(certificatePath, certificate.ExportCertificatePem());
        File.WriteAllText(keyPath, ((AsymmetricAlgorithm?)ecdsa ?? rsa!).ExportPkcs8PrivateKeyPem());
        return (certificatePath, keyPath);
    }

    /// <summary>Writes the authority's certificate as a PEM file.</summary>
    public static string WriteAuthority(string directory)
    {
        string path = Path.Combine(directory, "authority.pem");
        File.WriteAllText(path, Authority.ExportCertificatePem());
        return path;
    }

    private static (CertificateRequest Request, ECDsa Key) NewEcdsa(string subject)
    {
        ECDsa key = ECDsa.Create(ECCurve.NamedCurves.nistP256);
        return (new CertificateRequest(Name(subject), key, HashAlgorithmName.SHA256), key);
    }

    private static X500DistinguishedName Name(string commonName) => new($"CN={commonName}");

    private static X509Certificate2 Sign(
        (CertificateRequest Request, ECDsa Key) subject,
        string name,
        DateTimeOffset? from = null,
        DateTimeOffset? to = null,
        X509Certificate2? issuer = null)
    {
        using X509Certificate2 certificate = Issue(subject.Request, name, from, to, issuer ?? Authority);
        X509Certificate2 signed = Reload(certificate.CopyWithPrivateKey(subject.Key));

        // .NET decodes these at the first use, without a lock: servers that start side by side saw none.
        foreach (X509EnhancedKeyUsageExtension usages in signed.Extensions.OfType<X509EnhancedKeyUsageExtension>())
        {
            _ = usages.EnhancedKeyUsages;
        }

        return signed;
    }

    private static X509Certificate2 SignRsa(string name)
    {
        RSA key = RsaKey(Rsa2048);
        CertificateRequest request = new(Name(name), key, HashAlgorithmName.SHA256, RSASignaturePadding.Pkcs1);
        using X509Certificate2 certificate = Issue(request, name, null, null, Authority);
        return Reload(certificate.CopyWithPrivateKey(key));
    }

    private static X509Certificate2 Issue(
        CertificateRequest request, string name, DateTimeOffset? from, DateTimeOffset? to, X509Certificate2 issuer)
    {
        AddLeafExtensions(request, name);
        using ECDsa issuerKey = issuer.GetECDsaPrivateKey()!;
        return request.Create(
            issuer.SubjectName,
            X509SignatureGenerator.CreateForECDsa(issuerKey),
            from ?? DateTimeOffset.UtcNow.AddDays(-1),
            to ?? DateTimeOffset.UtcNow.AddDays(30),
            RandomNumberGenerator.GetBytes(8));
    }

    private static void AddLeafExtensions(CertificateRequest request, string name)
    {
        SubjectAlternativeNameBuilder names = new();
        names.AddDnsName(name);
        if (name == "localhost")
        {
            names.AddIpAddress(IPAddress.Loopback);
        }

        request.CertificateExtensions.Add(names.Build());
        request.CertificateExtensions.Add(new X509BasicConstraintsExtension(false, false, 0, true));
        request.CertificateExtensions.Add(new X509KeyUsageExtension(X509KeyUsageFlags.DigitalSignature, true));
        request.CertificateExtensions.Add(new X509EnhancedKeyUsageExtension(
            [new Oid("1.3.6.1.5.5.7.3.1"), new Oid("1.3.6.1.5.5.7.3.2")], false));
    }

    private static X509Certificate2 SelfSign(string name, bool isAuthority)
    {
        (CertificateRequest request, ECDsa _) = NewEcdsa(name);
        if (isAuthority)
        {
            AddAuthorityExtensions(request);
        }
        else
        {
            AddLeafExtensions(request, name);
        }

        return request.CreateSelfSigned(DateTimeOffset.UtcNow.AddDays(-60), DateTimeOffset.UtcNow.AddDays(60));
    }

    private static X509Certificate2 MakeIntermediate(string name, params X509Extension[] extensions)
    {
        (CertificateRequest request, ECDsa key) = NewEcdsa(name);
        AddAuthorityExtensions(request);
        foreach (X509Extension extension in extensions)
        {
            request.CertificateExtensions.Add(extension);
        }

        using X509Certificate2 certificate = request.Create(
            Authority, DateTimeOffset.UtcNow.AddDays(-40), DateTimeOffset.UtcNow.AddDays(40), RandomNumberGenerator.GetBytes(8));
        return certificate.CopyWithPrivateKey(key);
    }

    private static void AddAuthorityExtensions(CertificateRequest request)
    {
        request.CertificateExtensions.Add(new X509BasicConstraintsExtension(true, false, 0, true));
        request.CertificateExtensions.Add(
            new X509KeyUsageExtension(X509KeyUsageFlags.KeyCertSign | X509KeyUsageFlags.CrlSign, true));
        request.CertificateExtensions.Add(new X509SubjectKeyIdentifierExtension(request.PublicKey, false));
    }

    /// <summary>Reloads the certificate from PKCS#12, as an application loads it from a file.</summary>
    private static X509Certificate2 Reload(X509Certificate2 certificate)
    {
        using (certificate)
        {
            return X509CertificateLoader.LoadPkcs12(certificate.Export(X509ContentType.Pkcs12), password: null);
        }
    }
}

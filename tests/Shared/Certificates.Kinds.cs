using System.Collections.Concurrent;
using System.Net;
using System.Net.Security;
using System.Security.Cryptography;
using System.Security.Cryptography.X509Certificates;

namespace KernelTls.Tests;

// Certificates by kind, each created on first use.
internal static partial class Certificates
{
    private const string ServerUsage = "1.3.6.1.5.5.7.3.1";
    private const string ClientUsage = "1.3.6.1.5.5.7.3.2";

    private static readonly ConcurrentDictionary<string, Lazy<X509Certificate2>> s_kinds = new();
    private static readonly ConcurrentDictionary<string, Lazy<SslStreamCertificateContext>> s_contexts = new();

    private static readonly Lazy<X509Certificate2> s_otherAuthority =
        new(() => SelfSign("KernelTls other authority", isAuthority: true));

    /// <summary>Gets an authority that <see cref="Trust"/> does not know.</summary>
    public static X509Certificate2 OtherAuthority => s_otherAuthority.Value;

    /// <summary>Gets a client certificate signed by the intermediate authority.</summary>
    public static X509Certificate2 ChainedClient => Kind("chained client");

    /// <summary>Gets a client certificate signed by <see cref="OtherAuthority"/>.</summary>
    public static X509Certificate2 OtherClient => Kind("other client");

    public static X509Certificate2 Intermediate => s_intermediate.Value;

    /// <summary>Gets an intermediate authority whose certificate has 60 kB.</summary>
    public static X509Certificate2 Large => s_large.Value;

    /// <summary>Returns the certificate for a description, the same one each time.</summary>
    public static X509Certificate2 Kind(string kind) => s_kinds.GetOrAdd(kind, k => new(() => Make(k))).Value;

    /// <summary>Returns the context of the certificate for a description, the same one each time.</summary>
    public static SslStreamCertificateContext KindContext(string kind) => s_contexts.GetOrAdd(kind, k => new(() =>
        k.StartsWith("chained", StringComparison.Ordinal)
            ? SslStreamCertificateContext.Create(Kind(k), [Intermediate], offline: true)
            : Context(Kind(k)))).Value;

    private static X509Certificate2 Make(string kind) => kind switch
    {
        "good" => Ecdsa,
        "RSA 2048" => MakeLeaf("localhost", RsaKey(Rsa2048)),
        "RSA 3072" => MakeLeaf("localhost", RsaKey(Rsa3072)),
        "RSA 2048, signed with PSS" => SelfSignWithPss(),
        "ECDSA P-256" => MakeLeaf("localhost", ECDsa.Create(ECCurve.NamedCurves.nistP256)),
        "ECDSA P-384" => MakeLeaf("localhost", ECDsa.Create(ECCurve.NamedCurves.nistP384)),
        "ECDSA P-521" => MakeLeaf("localhost", ECDsa.Create(ECCurve.NamedCurves.nistP521)),
        "signed with SHA-384" => MakeLeaf("localhost", NewKey(), hash: HashAlgorithmName.SHA384),
        "signed with SHA-512" => MakeLeaf("localhost", NewKey(), hash: HashAlgorithmName.SHA512),
        "ephemeral" => X509CertificateLoader.LoadPkcs12(
            Rsa.Export(X509ContentType.Pkcs12), null, X509KeyStorageFlags.EphemeralKeySet),
        "key attached" => WithoutKey(Ecdsa).CopyWithPrivateKey(Ecdsa.GetECDsaPrivateKey()!),
        "from PEM" => X509Certificate2.CreateFromPem(
            Ecdsa.ExportCertificatePem(), Ecdsa.GetECDsaPrivateKey()!.ExportPkcs8PrivateKeyPem()),
        "wrong name" => WrongName,
        "expired" => Expired,
        "self-signed" => SelfSigned,
        "not yet valid" => MakeLeaf("localhost", NewKey(), from: DateTimeOffset.UtcNow.AddDays(5)),
        "for clients only" => MakeLeaf("localhost", NewKey(), usages: [ClientUsage]),
        "for servers only" => MakeLeaf("localhost", NewKey(), usages: [ServerUsage]),
        "for any use" => MakeLeaf("localhost", NewKey(), usages: []),
        "for an address" => MakeLeaf("an address", NewKey(), names: ["127.0.0.1"]),
        "without alternative names" => MakeLeaf("localhost", NewKey(), names: []),
        "wildcard" => MakeLeaf("wildcard", NewKey(), names: ["*.wild.test"]),
        "wildcard, part of a label" => MakeLeaf("wildcard", NewKey(), names: ["f*.wild.test"]),
        "international" => MakeLeaf("international", NewKey(), names: ["xn--bcher-kva.test"]),
        "untrusted" => MakeLeaf("localhost", NewKey(), issuer: OtherAuthority),
        "chained" => MakeLeaf("localhost", NewKey(), issuer: Intermediate),
        "chained client" => MakeLeaf("a chained client", NewKey(), issuer: Intermediate),
        "client of a large authority" => MakeLeaf("a client of a large authority", NewKey(), issuer: Large),
        "other client" => MakeLeaf("another client", NewKey(), issuer: OtherAuthority),
        "second client" => MakeLeaf("a second client", NewKey()),
        "expired client" => MakeLeaf("an expired client", NewKey(), to: DateTimeOffset.UtcNow.AddHours(-1)),
        "RSA client" => MakeLeaf("an RSA client", RsaKey(Rsa2048)),
        _ => throw new ArgumentOutOfRangeException(nameof(kind), kind, "No such kind of certificate."),
    };

    private static ECDsa NewKey() => ECDsa.Create(ECCurve.NamedCurves.nistP256);

    private static X509Certificate2 MakeLeaf(
        string subject,
        AsymmetricAlgorithm key,
        string[]? names = null,
        string[]? usages = null,
        DateTimeOffset? from = null,
        DateTimeOffset? to = null,
        X509Certificate2? issuer = null,
        HashAlgorithmName? hash = null)
    {
        issuer ??= Authority;
        CertificateRequest request = key is RSA rsa
            ? new(Name(subject), rsa, hash ?? HashAlgorithmName.SHA256, RSASignaturePadding.Pkcs1)
            : new(Name(subject), (ECDsa)key, hash ?? HashAlgorithmName.SHA256);
        if (names is not [])
        {
            SubjectAlternativeNameBuilder alternatives = new();
            foreach (string name in names ?? (subject == "localhost" ? ["localhost", "127.0.0.1"] : ["client.test"]))
            {
                if (IPAddress.TryParse(name, out IPAddress? address))
                {
                    alternatives.AddIpAddress(address);
                }
                else
                {
                    alternatives.AddDnsName(name);
                }
            }

            request.CertificateExtensions.Add(alternatives.Build());
        }

        request.CertificateExtensions.Add(new X509BasicConstraintsExtension(false, false, 0, true));
        request.CertificateExtensions.Add(new X509KeyUsageExtension(
            X509KeyUsageFlags.DigitalSignature | (key is RSA ? X509KeyUsageFlags.KeyEncipherment : 0), true));
        if (usages is not [])
        {
            request.CertificateExtensions.Add(new X509EnhancedKeyUsageExtension(
                [.. (usages ?? [ServerUsage, ClientUsage]).Select(u => new Oid(u))], false));
        }

        using ECDsa issuerKey = issuer.GetECDsaPrivateKey()!;
        using X509Certificate2 certificate = request.Create(
            issuer.SubjectName,
            X509SignatureGenerator.CreateForECDsa(issuerKey),
            from ?? DateTimeOffset.UtcNow.AddDays(-2),
            to ?? DateTimeOffset.UtcNow.AddDays(30),
            RandomNumberGenerator.GetBytes(8));
        return Reload(key is RSA own ? certificate.CopyWithPrivateKey(own) : certificate.CopyWithPrivateKey((ECDsa)key));
    }

    private static X509Certificate2 SelfSignWithPss()
    {
        CertificateRequest request = new(Name("localhost"), RsaKey(Rsa2048), HashAlgorithmName.SHA256, RSASignaturePadding.Pss);
        AddLeafExtensions(request, "localhost");
        return Reload(request.CreateSelfSigned(DateTimeOffset.UtcNow.AddDays(-1), DateTimeOffset.UtcNow.AddDays(30)));
    }
}

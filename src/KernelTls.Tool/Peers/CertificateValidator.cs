using System.Net.Security;
using System.Security.Cryptography.X509Certificates;

namespace KernelTls.Tool.Peers;

/// <summary>Validates the peer's certificate and stores the result, for one connection.</summary>
/// <param name="insecure">Whether to accept a certificate that is not trusted.</param>
internal sealed class CertificateValidator(bool insecure)
{
    /// <summary>Gets the reason for refusing the certificate, or <see langword="null"/> if it was accepted.</summary>
    public string? Refusal { get; private set; }

    /// <summary>
    /// Gets the facts about the peer's certificate, or <see langword="null"/> before the handshake and if a resumed
    /// session was not validated again.
    /// </summary>
    public CertificateFacts? Facts { get; private set; }

    /// <summary>Gets a value that indicates whether the peer has requested a certificate that this end does not have.</summary>
    public bool IsCertificateRequested { get; private set; }

    /// <summary>Selects no certificate. It is called before the handshake, and again with the peer's certificate on a request.</summary>
    public X509Certificate SelectNone(
        object sender, string targetHost, X509CertificateCollection localCertificates, X509Certificate? remoteCertificate, string[] acceptableIssuers)
    {
        IsCertificateRequested |= remoteCertificate is not null;
        return null!;
    }

    public bool Validate(object sender, X509Certificate? certificate, X509Chain? chain, SslPolicyErrors errors)
    {
        string[] complaints = errors == SslPolicyErrors.None ? [] : [.. Complaints(certificate, chain, errors)];
        if (certificate is not null)
        {
            Facts = new CertificateFacts(
                certificate.Subject,
                certificate.Issuer,
                DateTime.Parse(certificate.GetExpirationDateString(), System.Globalization.CultureInfo.CurrentCulture).ToUniversalTime(),
                chain?.ChainElements.Count ?? 1,
                complaints);
        }

        if (errors == SslPolicyErrors.None || insecure)
        {
            return true;
        }

        Refusal = string.Join("; ", complaints);
        return false;
    }

    private static IEnumerable<string> Complaints(X509Certificate? certificate, X509Chain? chain, SslPolicyErrors errors)
    {
        if ((errors & SslPolicyErrors.RemoteCertificateNotAvailable) != 0)
        {
            yield return "the peer sent none";
        }

        if ((errors & SslPolicyErrors.RemoteCertificateNameMismatch) != 0)
        {
            yield return $"NameMismatch (it is for {certificate?.Subject})";
        }

        foreach (X509ChainStatus status in chain?.ChainStatus.DistinctBy(s => s.Status) ?? [])
        {
            yield return $"{status.Status} ({status.StatusInformation.Trim()})";
        }
    }

    /// <summary>Contains facts about the peer's certificate.</summary>
    /// <param name="Subject">The subject.</param>
    /// <param name="Issuer">The issuer.</param>
    /// <param name="NotAfter">The end of its validity, UTC.</param>
    /// <param name="ChainLength">The number of certificates in the chain that was built.</param>
    /// <param name="Complaints">The reasons why it is not trusted, or an empty list.</param>
    internal sealed record CertificateFacts(string Subject, string Issuer, DateTime NotAfter, int ChainLength, IReadOnlyList<string> Complaints);
}

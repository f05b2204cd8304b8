using System.Net.Security;
using System.Security.Cryptography.X509Certificates;

namespace KernelTls.Tool.Peers;

/// <summary>Judges the peer's certificate and remembers what it saw. For one connection.</summary>
/// <param name="insecure">Lets pass what is not trusted.</param>
internal sealed class CertificateJudge(bool insecure)
{
    /// <summary>What is wrong with the certificate, and the connection did not go on; else <see langword="null"/>.</summary>
    public string? Refusal { get; private set; }

    /// <summary>What the peer showed; <see langword="null"/> before, and where a session was resumed without being judged.</summary>
    public CertificateFacts? Facts { get; private set; }

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
            yield return "the peer showed none";
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

    /// <summary>What the peer showed.</summary>
    /// <param name="Subject">Whose it is.</param>
    /// <param name="Issuer">Who signed it.</param>
    /// <param name="NotAfter">When it ends, UTC.</param>
    /// <param name="ChainLength">Certificates in the chain that was built.</param>
    /// <param name="Complaints">Why it is not trusted; empty where it is.</param>
    internal sealed record CertificateFacts(string Subject, string Issuer, DateTime NotAfter, int ChainLength, IReadOnlyList<string> Complaints);
}

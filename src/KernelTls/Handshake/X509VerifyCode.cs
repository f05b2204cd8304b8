using System.Net.Security;
using System.Security.Cryptography.X509Certificates;

namespace KernelTls.Handshake;

/// <summary>
/// Provides OpenSSL's verification codes (X509_V_*). Each is chosen for the alert that it makes OpenSSL send (RFC 8446,
/// section 6.2), so that the peer receives SslStream's alert.
/// </summary>
internal static class X509VerifyCode
{
    public const int Later = -2;                 // KTLS_VERDICT_LATER: verify again at the end of the server's flight
    public const int Ok = 0;
    public const int InternalError = 1;          // X509_V_ERR_UNSPECIFIED: internal_error
    private const int Expired = 10;              // X509_V_ERR_CERT_HAS_EXPIRED: certificate_expired
    private const int UntrustedRoot = 19;        // X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN: unknown_ca
    private const int Revoked = 23;              // X509_V_ERR_CERT_REVOKED: certificate_revoked
    private const int WrongPurpose = 26;         // X509_V_ERR_INVALID_PURPOSE: unsupported_certificate
    private const int Rejected = 28;             // X509_V_ERR_CERT_REJECTED: bad_certificate
    public const int Application = 50;           // X509_V_ERR_APPLICATION_VERIFICATION: handshake_failure
    private const int Unknown = 30;              // X509_V_ERR_AKID_SKID_MISMATCH: certificate_unknown

    private static readonly (X509ChainStatusFlags Flags, int Code)[] s_codes =
    [
        (X509ChainStatusFlags.UntrustedRoot | X509ChainStatusFlags.PartialChain | X509ChainStatusFlags.Cyclic, UntrustedRoot),
        (X509ChainStatusFlags.Revoked | X509ChainStatusFlags.OfflineRevocation, Revoked),
        (X509ChainStatusFlags.CtlNotTimeValid | X509ChainStatusFlags.NotTimeNested | X509ChainStatusFlags.NotTimeValid, Expired),
        (X509ChainStatusFlags.CtlNotValidForUsage, WrongPurpose),
        (X509ChainStatusFlags.CtlNotSignatureValid | X509ChainStatusFlags.InvalidExtension |
            X509ChainStatusFlags.NotSignatureValid | X509ChainStatusFlags.InvalidPolicyConstraints |
            X509ChainStatusFlags.NoIssuanceChainPolicy | X509ChainStatusFlags.NotValidForUsage |
            X509ChainStatusFlags.RevocationStatusUnknown, Rejected),
    ];

    public static int For(SslPolicyErrors errors, X509Chain chain)
    {
        if ((errors & SslPolicyErrors.RemoteCertificateChainErrors) == 0)
        {
            return (errors & SslPolicyErrors.RemoteCertificateNameMismatch) != 0 ? Rejected : Unknown;
        }

        foreach (X509ChainStatus status in chain.ChainStatus)
        {
            foreach ((X509ChainStatusFlags flags, int code) in s_codes)
            {
                if ((status.Status & flags) != 0)
                {
                    return code;
                }
            }
        }

        return Unknown;
    }
}

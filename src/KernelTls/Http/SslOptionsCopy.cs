using System.Net.Security;

namespace KernelTls.Http;

/// <summary>
/// Copies client options, so that target host and ALPN can differ per connection. A unit test compares the copy,
/// property by property, with the options of the running .NET.
/// </summary>
internal static class SslOptionsCopy
{
    public static SslClientAuthenticationOptions Of(SslClientAuthenticationOptions options)
    {
        SslClientAuthenticationOptions copy = new()
        {
            AllowRenegotiation = options.AllowRenegotiation,
            AllowTlsResume = options.AllowTlsResume,
            ApplicationProtocols = options.ApplicationProtocols,
            CertificateChainPolicy = options.CertificateChainPolicy,
            CertificateRevocationCheckMode = options.CertificateRevocationCheckMode,
            CipherSuitesPolicy = options.CipherSuitesPolicy,
            ClientCertificateContext = options.ClientCertificateContext,
            ClientCertificates = options.ClientCertificates,
            EnabledSslProtocols = options.EnabledSslProtocols,
            EncryptionPolicy = options.EncryptionPolicy,
            LocalCertificateSelectionCallback = options.LocalCertificateSelectionCallback,
            RemoteCertificateValidationCallback = options.RemoteCertificateValidationCallback,
            TargetHost = options.TargetHost,
        };

        if (OperatingSystem.IsLinux() || OperatingSystem.IsWindows())
        {
            copy.AllowRsaPkcs1Padding = options.AllowRsaPkcs1Padding;
            copy.AllowRsaPssPadding = options.AllowRsaPssPadding;
        }

        return copy;
    }
}

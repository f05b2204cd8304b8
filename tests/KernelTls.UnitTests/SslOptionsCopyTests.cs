using System.Net.Security;
using System.Reflection;
using System.Security.Authentication;
using System.Security.Cryptography.X509Certificates;
using KernelTls.Http;
using KernelTls.Tests;

namespace KernelTls.UnitTests;

#pragma warning disable CA1416 // Linux
public class SslOptionsCopyTests
{
    [Fact]
    public void Every_property_of_this_runtime_is_copied()
    {
        SslClientAuthenticationOptions options = new()
        {
            AllowRenegotiation = false,
            AllowRsaPkcs1Padding = false,
            AllowRsaPssPadding = false,
            AllowTlsResume = false,
            ApplicationProtocols = [SslApplicationProtocol.Http2],
            CertificateChainPolicy = new X509ChainPolicy(),
            CertificateRevocationCheckMode = X509RevocationMode.Offline,
            CipherSuitesPolicy = new CipherSuitesPolicy([TlsCipherSuite.TLS_AES_128_GCM_SHA256]),
            ClientCertificateContext = Certificates.ClientContext,
            ClientCertificates = [Certificates.Client],
            EnabledSslProtocols = SslProtocols.Tls13,
#pragma warning disable SYSLIB0040
            EncryptionPolicy = EncryptionPolicy.AllowNoEncryption,
#pragma warning restore SYSLIB0040
            LocalCertificateSelectionCallback = (_, _, _, _, _) => null!,
            RemoteCertificateValidationCallback = (_, _, _, _) => true,
            TargetHost = "localhost",
        };
        SslClientAuthenticationOptions blank = new();

        SslClientAuthenticationOptions copy = SslOptionsCopy.Of(options);

        foreach (PropertyInfo property in typeof(SslClientAuthenticationOptions).GetProperties())
        {
            Assert.False(
                Equals(property.GetValue(options), property.GetValue(blank)),
                $"{property.Name} is new in this runtime: set it here, and decide what SslOptionsCopy does with it");
            Assert.True(
                Equals(property.GetValue(options), property.GetValue(copy)), $"{property.Name} was not copied");
        }
    }
}

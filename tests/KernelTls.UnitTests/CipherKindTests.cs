using System.Net.Security;
using KernelTls.Offload;

namespace KernelTls.UnitTests;

[Trait("system", "any")]
public class CipherKindTests
{
    [Theory]
    [InlineData(TlsCipherSuite.TLS_AES_128_GCM_SHA256, "Aes128Gcm")]
    [InlineData(TlsCipherSuite.TLS_AES_256_GCM_SHA384, "Aes256Gcm")]
    [InlineData(TlsCipherSuite.TLS_CHACHA20_POLY1305_SHA256, "ChaCha20Poly1305")]
    [InlineData(TlsCipherSuite.TLS_AES_128_CCM_SHA256, "Aes128Ccm")]
    [InlineData(TlsCipherSuite.TLS_AES_128_CCM_8_SHA256, "None")]
    [InlineData(TlsCipherSuite.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, "Aes128Gcm")]
    [InlineData(TlsCipherSuite.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, "Aes256Gcm")]
    [InlineData(TlsCipherSuite.TLS_RSA_WITH_AES_256_GCM_SHA384, "Aes256Gcm")]
    [InlineData(TlsCipherSuite.TLS_DHE_RSA_WITH_CHACHA20_POLY1305_SHA256, "ChaCha20Poly1305")]
    [InlineData(TlsCipherSuite.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256, "ChaCha20Poly1305")]
    [InlineData(TlsCipherSuite.TLS_ECDHE_ECDSA_WITH_AES_128_CCM, "Aes128Ccm")]
    [InlineData(TlsCipherSuite.TLS_ECDHE_ECDSA_WITH_AES_256_CCM, "None")]
    [InlineData(TlsCipherSuite.TLS_ECDHE_ECDSA_WITH_AES_128_CCM_8, "None")]
    [InlineData(TlsCipherSuite.TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256, "None")]
    [InlineData(TlsCipherSuite.TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA384, "None")]
    [InlineData(TlsCipherSuite.TLS_ECDHE_RSA_WITH_ARIA_128_GCM_SHA256, "None")]
    [InlineData(TlsCipherSuite.TLS_RSA_WITH_CAMELLIA_128_GCM_SHA256, "None")]
    [InlineData(TlsCipherSuite.TLS_RSA_WITH_3DES_EDE_CBC_SHA, "None")]
    [InlineData(TlsCipherSuite.TLS_NULL_WITH_NULL_NULL, "None")]
    [InlineData((TlsCipherSuite)0xFEFE, "None")]
    public void A_suite_has_the_record_cipher_that_its_name_says(TlsCipherSuite suite, string expected) =>
        Assert.Equal(expected, CipherKinds.Of(suite).ToString());

    [Fact]
    public void Every_suite_of_the_enumeration_is_classified_without_an_error() =>
        Assert.All(Enum.GetValues<TlsCipherSuite>(), s => Assert.InRange((int)CipherKinds.Of(s), -1, 3));
}

using System.Net.Security;

namespace KernelTls.Handshake;

/// <summary>Cipher suites in OpenSSL's spelling.</summary>
internal static class CipherSuiteNames
{
    /// <summary>
    /// TLS 1.2 suites offered without a policy: forward secrecy only, as .NET does on Linux, with the AEAD suites, which
    /// the kernel can take over, first.
    /// </summary>
    public const string DefaultTls12 =
        "ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES256-GCM-SHA384:ECDHE-RSA-AES128-GCM-SHA256:" +
        "ECDHE-ECDSA-AES256-SHA384:ECDHE-ECDSA-AES128-SHA256:ECDHE-RSA-AES256-SHA384:ECDHE-RSA-AES128-SHA256";

    /// <summary>TLS 1.3 suites go by their IANA names in OpenSSL.</summary>
    public static bool IsTls13(TlsCipherSuite suite) => ((int)suite & 0xFF00) == 0x1300;

    /// <summary>OpenSSL's name of a TLS 1.2 suite, or <see langword="null"/> where this library has no name for it.</summary>
    public static string? Tls12(TlsCipherSuite suite) => suite switch
    {
        TlsCipherSuite.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384 => "ECDHE-ECDSA-AES256-GCM-SHA384",
        TlsCipherSuite.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256 => "ECDHE-ECDSA-AES128-GCM-SHA256",
        TlsCipherSuite.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384 => "ECDHE-RSA-AES256-GCM-SHA384",
        TlsCipherSuite.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 => "ECDHE-RSA-AES128-GCM-SHA256",
        TlsCipherSuite.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256 => "ECDHE-ECDSA-CHACHA20-POLY1305",
        TlsCipherSuite.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256 => "ECDHE-RSA-CHACHA20-POLY1305",
        TlsCipherSuite.TLS_ECDHE_ECDSA_WITH_AES_128_CCM => "ECDHE-ECDSA-AES128-CCM",
        TlsCipherSuite.TLS_ECDHE_ECDSA_WITH_AES_256_CCM => "ECDHE-ECDSA-AES256-CCM",
        TlsCipherSuite.TLS_DHE_RSA_WITH_AES_256_GCM_SHA384 => "DHE-RSA-AES256-GCM-SHA384",
        TlsCipherSuite.TLS_DHE_RSA_WITH_AES_128_GCM_SHA256 => "DHE-RSA-AES128-GCM-SHA256",
        TlsCipherSuite.TLS_DHE_RSA_WITH_CHACHA20_POLY1305_SHA256 => "DHE-RSA-CHACHA20-POLY1305",
        TlsCipherSuite.TLS_RSA_WITH_AES_256_GCM_SHA384 => "AES256-GCM-SHA384",
        TlsCipherSuite.TLS_RSA_WITH_AES_128_GCM_SHA256 => "AES128-GCM-SHA256",
        TlsCipherSuite.TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA384 => "ECDHE-ECDSA-AES256-SHA384",
        TlsCipherSuite.TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256 => "ECDHE-ECDSA-AES128-SHA256",
        TlsCipherSuite.TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA384 => "ECDHE-RSA-AES256-SHA384",
        TlsCipherSuite.TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256 => "ECDHE-RSA-AES128-SHA256",
        _ => null,
    };
}

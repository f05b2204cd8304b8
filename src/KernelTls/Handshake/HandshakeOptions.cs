using System.Buffers;
using System.Globalization;
using System.Net;
using System.Net.Security;
using System.Security.Authentication;
using System.Text;
using KernelTls.Interop;

namespace KernelTls.Handshake;

/// <summary>The part that client and server options have in common: versions, suites, ALPN.</summary>
internal static class HandshakeOptions
{
    private const int Tls12 = 0x0303;
    private const int Tls13 = 0x0304;

    // What OpenSSL 3.0 and later know, in their order of preference.
    private static readonly string[] s_signatureAlgorithms =
    [
        "ecdsa_secp256r1_sha256", "ecdsa_secp384r1_sha384", "ecdsa_secp521r1_sha512", "ed25519", "ed448",
        "rsa_pss_pss_sha256", "rsa_pss_pss_sha384", "rsa_pss_pss_sha512",
        "rsa_pss_rsae_sha256", "rsa_pss_rsae_sha384", "rsa_pss_rsae_sha512",
        "rsa_pkcs1_sha256", "rsa_pkcs1_sha384", "rsa_pkcs1_sha512",
    ];

    // Names of these characters alone, without A-labels, IDNA leaves as they are.
    private static readonly SearchValues<char> s_plainName = SearchValues.Create("abcdefghijklmnopqrstuvwxyz0123456789-.");

    /// <summary>Builds the SSL_CTX key, or says why these options stay with the base class.</summary>
    public static KtlsFallbackReason TryCreateContextKey(
        bool isServer,
        ContextFlags flags,
        SslProtocols protocols,
        CipherSuitesPolicy? policy,
        List<SslApplicationProtocol>? applicationProtocols,
        SslStreamCertificateContext? certificate,
        string? signatureAlgorithms,
        out TlsContextKey? key)
    {
        // None leaves the versions to OpenSSL's configuration, as in SslStream.
        key = null;
        (int min, int max) = protocols switch
        {
            SslProtocols.None => (0, 0),
            SslProtocols.Tls12 | SslProtocols.Tls13 => (Tls12, Tls13),
            SslProtocols.Tls12 => (Tls12, Tls12),
            SslProtocols.Tls13 => (Tls13, Tls13),
            _ => (-1, -1),
        };
        if (max < 0)
        {
            return KtlsFallbackReason.ProtocolNotOffloadable;
        }

        // Without a policy the suites are those that SslStream has on this machine: DefaultCipherList.
        string? cipherList = null;
        string? cipherSuites = null;
        if (policy is not null)
        {
            (string tls12, string tls13) = RuntimeInternals.NamesOf(policy);

            // A version without a suite is a version that is not offered. That TLS 1.3 is asked for by name, and then has none,
            // is a contradiction which the base class reports.
            if (tls13.Length == 0 && (protocols & SslProtocols.Tls13) != 0)
            {
                return KtlsFallbackReason.CipherSuitesPolicy;
            }

            min = tls12.Length == 0 ? Math.Max(min, Tls13) : min;
            max = tls13.Length == 0 ? (max == 0 ? Tls12 : Math.Min(max, Tls12)) : max;
            if (min > max && max != 0)
            {
                return KtlsFallbackReason.CipherSuitesPolicy;
            }

            cipherList = tls12.Length == 0 ? null : tls12;
            cipherSuites = tls13.Length == 0 ? null : tls13;
        }

        key = new TlsContextKey(
            isServer,
            flags | ContextFlags.ReleaseBuffers,
            min,
            max,
            cipherList,
            cipherSuites,
            EncodeAlpn(applicationProtocols),
            signatureAlgorithms,
            certificate);
        return KtlsFallbackReason.None;
    }

    /// <summary>RSA signatures limited to one padding, or none; <see langword="null"/>: no limit.</summary>
    public static string? SignatureAlgorithmsFor(bool allowPss, bool allowPkcs1) => allowPss && allowPkcs1
        ? null
        : string.Join(':', s_signatureAlgorithms.Where(a =>
            (allowPss || !a.StartsWith("rsa_pss_", StringComparison.Ordinal)) &&
            (allowPkcs1 || !a.StartsWith("rsa_pkcs1_", StringComparison.Ordinal))));

    /// <summary>The name as certificates and SNI spell it: no trailing dot, A-labels (RFC 5890) for internationalized names.</summary>
    public static string NormalizeHost(string? host)
    {
        if (string.IsNullOrEmpty(host))
        {
            return "";
        }

        string trimmed = host.TrimEnd('.');
        if (Ascii.IsValid(trimmed))
        {
            return trimmed;
        }

        try
        {
            return new IdnMapping { UseStd3AsciiRules = false, AllowUnassigned = true }.GetAscii(trimmed);
        }
        catch (ArgumentException)
        {
            // Not a name that IDNA can spell: it will match no certificate, and no SNI is sent for it.
            return trimmed;
        }
    }

    /// <summary>A received SNI as SslStream publishes it: U-labels where it has A-labels (RFC 5890).</summary>
    public static string PublishedServerName(string serverName)
    {
        if (!serverName.AsSpan().ContainsAnyExcept(s_plainName) && !serverName.Contains("xn--", StringComparison.Ordinal))
        {
            return serverName;
        }

        try
        {
            return new IdnMapping { UseStd3AsciiRules = false, AllowUnassigned = true }.GetUnicode(serverName);
        }
        catch (ArgumentException)
        {
            // Empty, or not a name that IDNA can read: as it came.
            return serverName;
        }
    }

    /// <summary>SNI carries DNS names only, never addresses (RFC 6066, section 3).</summary>
    public static string? ServerNameOf(string host) =>
        host.Length is 0 or > 255 || !Ascii.IsValid(host) || host.Contains('\0', StringComparison.Ordinal) || IPAddress.TryParse(host.Trim('[', ']'), out _)
            ? null
            : host;

    /// <summary>ALPN wire form (RFC 7301, section 3.1) as a string of one character per byte, so that equal lists are equal keys.</summary>
    private static string EncodeAlpn(List<SslApplicationProtocol>? protocols)
    {
        if (protocols is null || protocols.Count == 0)
        {
            return "";
        }

        ArrayBufferWriter<byte> wire = new();
        foreach (SslApplicationProtocol protocol in protocols)
        {
            // SslApplicationProtocol itself guarantees 1 to 255 bytes, except for the default value.
            if (protocol.Protocol.IsEmpty)
            {
                throw new ArgumentException("An application protocol is empty: expected 1 to 255 bytes (RFC 7301).", nameof(protocols));
            }

            wire.Write([(byte)protocol.Protocol.Length]);
            wire.Write(protocol.Protocol.Span);
        }

        return wire.WrittenCount <= ushort.MaxValue
            ? Encoding.Latin1.GetString(wire.WrittenSpan)
            : throw new ArgumentException("The list of application protocols is over 65535 bytes (RFC 7301).", nameof(protocols));
    }
}

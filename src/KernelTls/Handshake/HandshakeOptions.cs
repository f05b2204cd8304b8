using System.Buffers;
using System.Globalization;
using System.Net;
using System.Net.Security;
using System.Security.Authentication;
using System.Text;
using System.Text.Unicode;
using KernelTls.Interop;

namespace KernelTls.Handshake;

/// <summary>Converts the options that clients and servers have in common: versions, suites and ALPN.</summary>
internal static class HandshakeOptions
{
    private const int Tls12 = 0x0303;
    private const int Tls13 = 0x0304;

    // SslStream's list, which is what OpenSSL and its configuration offer by default.
    private static readonly Lazy<string[]> s_signatureAlgorithms = new(RuntimeInternals.GetDefaultSignatureAlgorithms);

    /// <summary>Creates the SSL_CTX key, or returns the reason why the base class must handle these options.</summary>
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
        // SslProtocols.None leaves the versions to OpenSSL's configuration, as in SslStream.
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

        // Without a policy the suites are SslStream's on this machine: DefaultCipherList.
        string? cipherList = null;
        string? cipherSuites = null;
        if (policy is not null)
        {
            (string tls12, string tls13) = RuntimeInternals.NamesOf(policy);

            // A version without a suite is not offered. TLS 1.3 enabled by name but without a suite is a contradiction,
            // which the base class reports.
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

    /// <summary>
    /// Returns the default signature algorithms without those that SslStream omits for the forbidden RSA paddings, or
    /// <see langword="null"/> for no limit.
    /// </summary>
    public static string? SignatureAlgorithmsFor(bool allowPss, bool allowPkcs1) => allowPss && allowPkcs1
        ? null
        : string.Join(':', s_signatureAlgorithms.Value.Where(a =>
            (allowPss || !a.StartsWith("rsa_pss_", StringComparison.Ordinal)) &&
            (allowPkcs1 || !a.StartsWith("rsa_pkcs1_", StringComparison.Ordinal))));

    /// <summary>
    /// Returns the name in the form of certificates and SNI: without a trailing dot, with A-labels (RFC 5890) for
    /// internationalized names.
    /// </summary>
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
            // IDNA cannot encode the name. It matches no certificate, and no SNI is sent for it.
            return trimmed;
        }
    }

    /// <summary>
    /// Returns a received SNI in the form that SslStream publishes: UTF-8, because clients send names outside of ASCII as they are,
    /// with U-labels instead of A-labels (RFC 5890). Other bytes are no name.
    /// </summary>
    /// <param name="name">The bytes of the name, without NUL.</param>
    public static string PublishedServerName(ReadOnlySpan<byte> name) =>
        Utf8.IsValid(name) ? PublishedServerName(Encoding.UTF8.GetString(name)) : "";

    private static string PublishedServerName(string serverName)
    {
        if (IsPlain(serverName) && !serverName.Contains("xn--", StringComparison.Ordinal))
        {
            return serverName;
        }

        try
        {
            return new IdnMapping { UseStd3AsciiRules = false, AllowUnassigned = true }.GetUnicode(serverName);
        }
        catch (ArgumentException)
        {
            // The name is empty or IDNA cannot decode it: return it unchanged.
            return serverName;
        }
    }

    /// <summary>
    /// Returns the SNI for a host. SNI contains DNS names only, never addresses (RFC 6066, section 3).
    /// </summary>
    public static string? ServerNameOf(string host) =>
        host.Length is 0 or > 255 || !Ascii.IsValid(host) || host.Contains('\0', StringComparison.Ordinal) || IPAddress.TryParse(host.Trim('[', ']'), out _)
            ? null
            : host;

    /// <summary>Returns whether a name has only characters that IDNA leaves unchanged, apart from A-labels.</summary>
    /// <remarks>The framework's vectorized search would be compiled at run time, for this one call.</remarks>
    private static bool IsPlain(string name)
    {
        foreach (char c in name)
        {
            if (!char.IsAsciiLetterLower(c) && !char.IsAsciiDigit(c) && c is not ('-' or '.'))
            {
                return false;
            }
        }

        return true;
    }

    /// <summary>
    /// Returns the ALPN wire form (RFC 7301, section 3.1) as a string with one character per byte, so that equal lists
    /// make equal keys.
    /// </summary>
    private static string EncodeAlpn(List<SslApplicationProtocol>? protocols)
    {
        if (protocols is null || protocols.Count == 0)
        {
            return "";
        }

        ArrayBufferWriter<byte> wire = new();
        foreach (SslApplicationProtocol protocol in protocols)
        {
            // SslApplicationProtocol guarantees 1 to 255 bytes, except for its default value.
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

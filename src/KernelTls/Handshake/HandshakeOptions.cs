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

    /// <summary>Builds the SSL_CTX key, or says why these options stay with the base class.</summary>
    public static KtlsFallbackReason TryCreateContextKey(
        bool isServer,
        ContextFlags flags,
        SslProtocols protocols,
        CipherSuitesPolicy? policy,
        List<SslApplicationProtocol>? applicationProtocols,
        SslStreamCertificateContext? certificate,
        out TlsContextKey? key)
    {
        key = null;
        (int min, int max) = protocols switch
        {
            SslProtocols.None or (SslProtocols.Tls12 | SslProtocols.Tls13) => (Tls12, Tls13),
            SslProtocols.Tls12 => (Tls12, Tls12),
            SslProtocols.Tls13 => (Tls13, Tls13),
            _ => (0, 0),
        };
        if (max == 0)
        {
            return KtlsFallbackReason.ProtocolNotOffloadable;
        }

        string cipherList = CipherSuiteNames.DefaultTls12;
        string? cipherSuites = null;
        if (policy is not null)
        {
            if (!TryNameSuites(policy, out cipherList, out cipherSuites))
            {
                return KtlsFallbackReason.CipherSuitesPolicy;
            }

            // A version without a suite is a version that is not offered.
            min = cipherList.Length == 0 ? Math.Max(min, Tls13) : min;
            max = cipherSuites.Length == 0 ? Math.Min(max, Tls12) : max;
            if (min > max)
            {
                return KtlsFallbackReason.CipherSuitesPolicy;
            }

            cipherList = cipherList.Length == 0 ? CipherSuiteNames.DefaultTls12 : cipherList;
            cipherSuites = cipherSuites.Length == 0 ? null : cipherSuites;
        }

        key = new TlsContextKey(
            isServer,
            flags | ContextFlags.ReleaseBuffers,
            min,
            max,
            cipherList,
            cipherSuites,
            EncodeAlpn(applicationProtocols),
            certificate);
        return KtlsFallbackReason.None;
    }

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

    private static bool TryNameSuites(CipherSuitesPolicy policy, out string cipherList, out string cipherSuites)
    {
        List<string> tls12 = [];
        List<string> tls13 = [];
        cipherList = cipherSuites = "";
        if (OperatingSystem.IsWindows() || OperatingSystem.IsAndroid())
        {
            return false;
        }

        foreach (TlsCipherSuite suite in policy.AllowedCipherSuites)
        {
            if (CipherSuiteNames.IsTls13(suite))
            {
                tls13.Add(suite.ToString());
            }
            else if (CipherSuiteNames.Tls12(suite) is string name)
            {
                tls12.Add(name);
            }
            else
            {
                return false;
            }
        }

        cipherList = string.Join(':', tls12);
        cipherSuites = string.Join(':', tls13);
        return true;
    }
}

using System.Globalization;

namespace KernelTls.Tests;

/// <summary>Provides the names of alerts (RFC 8446, section 6; RFC 5246, section 7.2).</summary>
internal static class AlertName
{
    private static readonly Dictionary<byte, string> s_names = new()
    {
        [0] = "close_notify",
        [10] = "unexpected_message",
        [20] = "bad_record_mac",
        [22] = "record_overflow",
        [40] = "handshake_failure",
        [42] = "bad_certificate",
        [43] = "unsupported_certificate",
        [44] = "certificate_revoked",
        [45] = "certificate_expired",
        [46] = "certificate_unknown",
        [47] = "illegal_parameter",
        [48] = "unknown_ca",
        [49] = "access_denied",
        [50] = "decode_error",
        [51] = "decrypt_error",
        [70] = "protocol_version",
        [71] = "insufficient_security",
        [80] = "internal_error",
        [86] = "inappropriate_fallback",
        [90] = "user_canceled",
        [100] = "no_renegotiation",
        [109] = "missing_extension",
        [120] = "no_application_protocol",
    };

    /// <summary>Returns the name in the RFCs, or the number of an alert without a name here.</summary>
    public static string Of(byte description) =>
        s_names.TryGetValue(description, out string? name) ? name : description.ToString(CultureInfo.InvariantCulture);

    /// <summary>Returns the name in OpenSSL's error texts, such as <c>alert bad record mac</c>.</summary>
    public static string InOpenSsl(byte description) => "alert " + Of(description).Replace('_', ' ');
}

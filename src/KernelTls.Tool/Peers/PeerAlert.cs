using System.Globalization;
using System.Text.RegularExpressions;

namespace KernelTls.Tool.Peers;

/// <summary>Finds the alert of a peer in a failure. OpenSSL reports alert N as error 1000 + N.</summary>
internal static partial class PeerAlert
{
    private const int FirstAlert = 1000;
    private const int LastAlert = FirstAlert + byte.MaxValue;

    // RFC 8446, section 6.
    private static readonly Dictionary<int, string> s_names = new()
    {
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
        [109] = "missing_extension",
        [110] = "unsupported_extension",
        [112] = "unrecognized_name",
        [113] = "bad_certificate_status_response",
        [115] = "unknown_psk_identity",
        [116] = "certificate_required",
        [120] = "no_application_protocol",
    };

    /// <summary>Returns the name of the alert, or <see langword="null"/> if the failure is not one.</summary>
    /// <param name="failure">The messages of the exception and its inner exceptions.</param>
    public static string? Find(string failure) =>
        ErrorCode().Matches(failure)
            .Select(m => int.Parse(m.Groups[1].ValueSpan, NumberStyles.HexNumber, CultureInfo.InvariantCulture))
            .Where(reason => reason is >= FirstAlert and <= LastAlert)
            .Select(reason => s_names.GetValueOrDefault(reason - FirstAlert) ?? $"number {reason - FirstAlert}")
            .FirstOrDefault();

    /// <summary>Returns whether the alert is about the certificate of the end that receives it, or that it has none.</summary>
    public static bool IsAboutCertificate(string? alert) => alert is "bad_certificate" or "unsupported_certificate" or "certificate_revoked"
        or "certificate_expired" or "certificate_unknown" or "unknown_ca" or "access_denied" or "certificate_required";

    [GeneratedRegex("error:0A([0-9A-F]{6}):", RegexOptions.IgnoreCase)]
    private static partial Regex ErrorCode();
}

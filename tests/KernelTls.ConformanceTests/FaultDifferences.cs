using System.Security.Authentication;

namespace KernelTls.ConformanceTests;

/// <summary>
/// What a fault may come to where the kernel decrypts, whatever OpenSSL and SslStream make of it. Each is rendered in
/// docs/differences.md; nothing else may differ.
/// </summary>
/// <param name="Alert">The alert that the peer is sent; empty: the fault has no effect, and the data arrives as it was sent.</param>
/// <param name="Why">What allows it.</param>
internal sealed record FaultDifference(string Alert, string Why);

/// <summary>The accepted differences, by fault.</summary>
internal static class FaultDifferences
{
    private static readonly FaultDifference s_unreadable = new(
        "bad record mac",
        "RFC 8446, 5.2; RFC 5246, 7.2.2: the kernel says EBADMSG of every record that is too short for the cipher or cannot be "
        + "decrypted, whatever its type: OpenSSL says unexpected_message, or internal_error, of some. RFC 8446, 5: a "
        + "ChangeCipherSpec after the handshake ends the connection; OpenSSL 3.5 drops it.");

    private static readonly FaultDifference s_long = new(
        "record overflow",
        "RFC 8446, 5.2: the kernel knows how long a record of this cipher can be; OpenSSL allows for any cipher, and then fails to decrypt.");

    private static readonly FaultDifference s_version = new(
        "protocol version",
        "RFC 8446, 5.1 and 6.2: the kernel looks at the version first; OpenSSL says decode_error or unexpected_message of some.");

    private static readonly FaultDifference s_unseen = new(
        "",
        "RFC 8446, 5.2: the outer type of a protected record says nothing. The kernel authenticates the one that it must be, "
        + "and takes the true type from inside the record.");

    private static readonly Dictionary<string, FaultDifference> s_all = new()
    {
        ["high length bit"] = s_unreadable,
        ["length 0"] = s_unreadable,
        ["length 1"] = s_unreadable,
        ["length 15"] = s_unreadable,
        ["length 16"] = s_unreadable,
        ["length 17"] = s_unreadable,
        ["length 24"] = s_unreadable,
        ["type 0"] = s_unreadable,
        ["type 24"] = s_unreadable,
        ["type 255"] = s_unreadable,
        ["alert, warning"] = s_unreadable,
        ["alert, fatal"] = s_unreadable,
        ["alert, close_notify"] = s_unreadable,
        ["HelloRequest"] = s_unreadable,
        ["empty handshake record"] = s_unreadable,
        ["late ChangeCipherSpec"] = s_unreadable,
        ["length 16409"] = s_long,
        ["length 16640"] = s_long,
        ["length 16641"] = s_long,
        ["major version"] = s_version,
        ["minor version"] = s_version,
        ["text"] = s_version,
        ["SSL 2"] = s_version,
    };

    private static readonly Dictionary<string, FaultDifference> s_tls13 = new()
    {
        ["length 16402"] = s_long,
        ["type 22 for 23"] = s_unseen,
    };

    public static FaultDifference? Find(string fault, SslProtocols version) =>
        version == SslProtocols.Tls13 && s_tls13.TryGetValue(fault, out FaultDifference? difference)
            ? difference
            : s_all.GetValueOrDefault(fault);
}

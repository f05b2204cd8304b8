using System.Security.Authentication;

namespace KernelTls.Tests;

/// <summary>Contains the accepted differences within a handshake.</summary>
internal static partial class FaultDifferences
{
    private const string Either = "RFC 8446, 6.1: which of the two a stream meets depends on time";

    private const string Short =
        "RFC 5246, 6.2.3.3: the kernel looks at a record once its header and nonce are there, 13 bytes; an unprotected alert has 7";

    private const string ByTime = "the reset may come while the record in front of it is read, or later";

    private const string TakenForKeyUpdate =
        "RFC 5246, 6.2.1: a message may come in any parts; the kernel takes a part that begins with 24 for a KeyUpdate, and the connection fails before any wrong byte";

    private const string OneInTwenty = "a Finished has such a byte in one of 20 handshakes";

    private const string BothTogether = "the stock parser meets the next record where both came together";

    private const string ReadsOn =
        "RFC 8446, 6.1: close_notify ends the connection, and what follows it is ignored; the stock stream reads on in some states of its handshake";

    public static IReadOnlyList<FaultDifference> Handshakes { get; } =
    [
        new(
            ["high length bit"],
            FaultField.Ending,
            "IOException",
            "AuthenticationException",
            "RFC 8446, 5.1: a record of an impossible length fails the handshake as any other fault in it does"),
        new(
            ["empty"],
            FaultField.Ending,
            "IndexOutOfRangeException",
            "AuthenticationException",
            "RFC 8446, 4.1.2: an empty ClientHello fails the handshake; the stock server lets an exception of its parser out")
        {
            When = FaultCondition.Net10,
        },
        new(
            ["last byte"],
            FaultField.Alert,
            "decrypt_error",
            "bad_certificate",
            "RFC 5246, 7.2.2: the certificate is judged before the signature in the next message")
        {
            Only = SslProtocols.Tls12, MayBeAbsent = SameAsOpenSsl,
        },
        new(
            ["major version"],
            FaultField.Ending,
            "AuthenticationException",
            FaultOutcome.All,
            "RFC 8446, 5.1: after a HelloRetryRequest OpenSSL ignores the version of an unprotected record, as it must")
        {
            Only = SslProtocols.Tls13, MayBeAbsent = "OpenSSL 3.0 refuses such a record",
        },
        new(
            ["empty handshake record*", "in two records with an empty record*"],
            FaultField.Ending,
            "IndexOutOfRangeException",
            "AuthenticationException",
            "RFC 8446, 5.1: such a record fails the handshake; the stock stream may throw an exception of its parser instead")
        {
            MayBeAbsent = BothTogether,
        },
        new(
            ["empty handshake record*", "in two records with an empty record*"],
            FaultField.Ending,
            "IndexOutOfRangeException",
            FaultOutcome.All,
            "RFC 5246, 6.2.1: OpenSSL drops an empty record between two messages; the stock stream may throw an exception of its parser instead")
        {
            MayBeAbsent = BothTogether,
        },
        new(["in records of one byte"], FaultField.Ending, FaultOutcome.All, Rekey, TakenForKeyUpdate)
        {
            IsKernelOnly = true, Only = SslProtocols.Tls12, When = FaultCondition.RekeyingKernel, MayBeAbsent = OneInTwenty,
        },
        new(["*"], FaultField.Alert, "internal_error", "bad_record_mac", Undecryptable)
        {
            IsKernelOnly = true, Only = SslProtocols.Tls12, When = FaultCondition.OldOpenSsl,
        },
        new(["length 16640"], FaultField.Alert, "bad_record_mac", "record_overflow", TooLong)
        {
            IsKernelOnly = true, Only = SslProtocols.Tls12,
        },
        new(["close_notify, then FIN"], FaultField.Ending, "AuthenticationException", "IOException", Short)
        {
            IsKernelOnly = true, Only = SslProtocols.Tls12,
        },
        new(["close_notify, then FIN"], FaultField.Alert, "bad_record_mac or internal_error", "decode_error", Short)
        {
            IsKernelOnly = true, Only = SslProtocols.Tls12,
        },
        new(["close_notify, then silence"], FaultField.Ending, "AuthenticationException", FaultOutcome.Waits, Short)
        {
            IsKernelOnly = true, Only = SslProtocols.Tls12,
        },
        new(["close_notify, then silence"], FaultField.Alert, "bad_record_mac or internal_error", "", Short)
        {
            IsKernelOnly = true, Only = SslProtocols.Tls12,
        },
        new(["close_notify, then reset"], FaultField.Ending, "AuthenticationException", "IOException (ConnectionReset)", Either)
        {
            MayBeAbsent = ByTime,
        },
        new(
            ["close_notify, then reset"],
            FaultField.Ending,
            "IOException (ConnectionReset)",
            "AuthenticationException",
            Either)
        {
            MayBeAbsent = ByTime,
        },
        new(
            ["close_notify*", "unprotected alert 1/0", "alert 1/0"],
            FaultField.Ending,
            "AuthenticationException",
            "IOException",
            ReadsOn)
        {
            When = FaultCondition.Net11,
        },
        new(["close_notify, then reset"], FaultField.Ending, "IOException (ConnectionReset)", "IOException", Either)
        {
            When = FaultCondition.Net11, MayBeAbsent = ByTime,
        },
        new(["unprotected alert 1/0"], FaultField.Alert, "protocol_version", "", ReadsOn)
        {
            When = FaultCondition.Net11, MayBeAbsent = SameAsOpenSsl,
        },
        new(
            ["empty handshake record*", "ChangeCipherSpec, empty"],
            FaultField.Ending,
            "AuthenticationException",
            FaultOutcome.All,
            "RFC 5246, 6.2.1: an empty record has no meaning; OpenSSL drops it in front of a ClientHello, and the stock server's own parser refuses it")
        {
            When = FaultCondition.Net11,
        },
        new(
            ["twice"],
            FaultField.Ending,
            "AuthenticationException",
            "IOException",
            "RFC 5246, 7.4.9: the first Finished ends the handshake, and the next fails a read; the stock stream takes both at once where they come together")
        {
            Only = SslProtocols.Tls12, When = FaultCondition.Net11, MayBeAbsent = "the two may come apart",
        },
    ];
}

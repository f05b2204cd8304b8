using System.Security.Authentication;

namespace KernelTls.Tests;

/// <summary>Contains the accepted differences, which docs/differences.md lists.</summary>
internal static partial class FaultDifferences
{
    private const string SocketFailure = "IOException (SocketError)";
    private const string Rekey = "KtlsRekeyException";
    private const string Renegotiation = "RFC 5246, 7.4.1.1 and 7.2.2: renegotiation may be refused by a warning, and the connection goes on";
    private const string InParts =
        "RFC 8446, 4.6.3 and 5.1: the kernel waits for the new key behind the first part of a KeyUpdate; the connection fails before any wrong byte";

    private const string Undecryptable = "RFC 5246, 7.2.2: it is the alert for a record that cannot be decrypted";

    private const string TooLong =
        "RFC 8446, 5.2: the kernel knows how long a record of this cipher can be; OpenSSL allows for any cipher, and then fails to decrypt";

    private const string OuterType =
        "RFC 8446, 5.2: the outer type says nothing; the kernel authenticates the one that it must be, and takes the true one from inside the record";

    private const string CannotRekey = "RFC 8446, 4.6.3: such a kernel cannot change keys; the connection fails before any wrong byte";

    private const string CannotAnswer =
        "RFC 8446, 4.6.3: an answer is due before the next data, and the kernel cannot change the key for it; the connection fails at once";

    private const string SameAsOpenSsl = "mode Kernel is compared with OpenSSL's alerts, and this one is the same";

    private const string SentFirst =
        "RFC 8446, 6.2: a send may take the record's error from the socket, and the kernel then has EBADMSG for the read";

    private const string IfSentFirst = "only if a send comes first";

    private const string ByHttp = "a fault meets one version of HTTP, and each of the two passes exceptions on in its own way";

    private static readonly string[] s_outerTypes = ["type 20 for 23", "type 21 for 23", "type 22 for 23", "type 151 for 23"];

    /// <summary>The differences for records that the kernel refuses: OpenSSL's alert may differ.</summary>
    private static readonly FaultDifference[] s_alerts =
    [
        new(
            ["unprotected*", "late ChangeCipherSpec*", "outer type*", "no type under the keys*"],
            FaultField.Alert,
            "unexpected_message",
            "bad_record_mac",
            "RFC 8446, 5.2: the kernel has one error for a record that is too short, cannot be decrypted or has no type, and does not give its type")
        {
            IsKernelOnly = true, Only = SslProtocols.Tls13, When = FaultCondition.KernelReceives,
        },
        new(
            ["unprotected*", "late ChangeCipherSpec*", "high length bit"],
            FaultField.Alert,
            "internal_error",
            "bad_record_mac",
            Undecryptable)
        {
            IsKernelOnly = true, Only = SslProtocols.Tls12, When = FaultCondition.OldOpenSsl,
        },
        new(
            ["unprotected type 23*"],
            FaultField.Alert,
            "bad_record_mac",
            "record_overflow",
            TooLong)
        {
            IsKernelOnly = true, When = FaultCondition.KernelReceives,
        },
        new(
            [
                "major version", "minor version", "text", "SSL 2", "noise", "a record of another version*",
                "KeyUpdate and a record of another version",
            ],
            FaultField.Alert,
            "decode_error or unexpected_message",
            "protocol_version",
            "RFC 8446, 5.1 and 6.2: the kernel looks at the version first")
        {
            IsKernelOnly = true, Only = SslProtocols.Tls13, When = FaultCondition.KernelReceives,
        },
    ];

    /// <summary>The differences for messages on an established connection.</summary>
    private static readonly FaultDifference[] s_messages =
    [
        new(s_outerTypes, FaultField.Ending, "IOException", FaultOutcome.All, OuterType)
        {
            IsKernelOnly = true, Only = SslProtocols.Tls13, When = FaultCondition.KernelReceives,
        },
        new(s_outerTypes, FaultField.Alert, "unexpected_message or bad_record_mac", "", OuterType)
        {
            IsKernelOnly = true, Only = SslProtocols.Tls13, When = FaultCondition.KernelReceives,
        },
        new(["HelloRequest*"], FaultField.Ending, "IOException", FaultOutcome.All, Renegotiation) { Only = SslProtocols.Tls12 },
        new(["HelloRequest*"], FaultField.Alert, null, "warning no_renegotiation", Renegotiation)
        {
            Only = SslProtocols.Tls12, MayBeAbsent = SameAsOpenSsl,
        },
        new(["ClientHello*"], FaultField.Ending, "IOException", FaultOutcome.All, Renegotiation) { Only = SslProtocols.Tls12 },
        new(["ClientHello*"], FaultField.Alert, "", "warning no_renegotiation", Renegotiation)
        {
            Only = SslProtocols.Tls12, MayBeAbsent = SameAsOpenSsl,
        },
        new(
            ["33 empty records", "1000 empty records", "10000 empty records"],
            FaultField.Ending,
            "IOException",
            FaultOutcome.All,
            "RFC 8446, 5.1: data may come in empty records; the kernel drops them without a limit, OpenSSL allows 32 in a row")
        {
            IsKernelOnly = true, When = FaultCondition.KernelReceives,
        },
        new(["33 empty records", "1000 empty records", "10000 empty records"], FaultField.Alert, "unexpected_message", "", "RFC 8446, 5.1: as above")
        {
            IsKernelOnly = true, When = FaultCondition.KernelReceives,
        },
        new(
            ["padding beyond the longest record"],
            FaultField.Ending,
            FaultOutcome.All,
            "IOException",
            "RFC 8446, 5.4: a record with its padding is no longer than any other; OpenSSL looks at the length without the padding")
        {
            IsKernelOnly = true, Only = SslProtocols.Tls13, When = FaultCondition.KernelReceives,
        },
        new(
            ["late ChangeCipherSpec"],
            FaultField.Ending,
            FaultOutcome.All,
            "IOException",
            "RFC 8446, 5: a ChangeCipherSpec after the handshake ends the connection; OpenSSL drops it")
        {
            IsKernelOnly = true, Only = SslProtocols.Tls13, When = FaultCondition.DroppingOpenSsl,
        },
        new(
            ["KeyUpdate, 10000 in a row", "KeyUpdate, requested, 10000 in a row"],
            FaultField.Ending,
            FaultOutcome.All,
            Rekey,
            "RFC 8446, D.6: a peer may not keep this end busy; 128 messages may come without data, and one more each second")
        {
            Only = SslProtocols.Tls13,
        },
        new(["KeyUpdate in*"], FaultField.Ending, FaultOutcome.All, Rekey, InParts)
        {
            IsKernelOnly = true, Only = SslProtocols.Tls13, When = FaultCondition.Rekeys,
        },
        new(["KeyUpdate with*", "half a message's header"], FaultField.Ending, "IOException", Rekey, InParts)
        {
            IsKernelOnly = true, Only = SslProtocols.Tls13, When = FaultCondition.Rekeys,
        },
        new(["KeyUpdate with*", "half a message's header"], FaultField.Alert, "unexpected_message", "", InParts)
        {
            IsKernelOnly = true, Only = SslProtocols.Tls13, When = FaultCondition.Rekeys,
        },
        new(
            ["half a message's header"],
            FaultField.Ending,
            FaultOutcome.All,
            Rekey,
            "RFC 5246, 7.4: TLS 1.2 has no such message; the kernel takes its first byte for a KeyUpdate")
        {
            IsKernelOnly = true, Only = SslProtocols.Tls12, When = FaultCondition.RekeyingKernel,
        },
        new(
            ["KeyUpdate, requested and a record of*"],
            FaultField.Ending,
            "IOException",
            SocketFailure,
            "RFC 8446, 6.2: the answer to the KeyUpdate meets the kernel's refusal first, and the connection ends without an alert")
        {
            IsKernelOnly = true, Only = SslProtocols.Tls13, When = FaultCondition.Rekeys,
        },
        new(
            ["KeyUpdate, requested and a record of*"],
            FaultField.Alert,
            "record_overflow or decode_error or protocol_version",
            "",
            "RFC 8446, 6.2: as above")
        {
            IsKernelOnly = true, Only = SslProtocols.Tls13, When = FaultCondition.Rekeys,
        },
        new(["KeyUpdate*", "two KeyUpdates*", "control records*", "half a message's header"], FaultField.Ending, null, Rekey, CannotRekey)
        {
            IsKernelOnly = true, Only = SslProtocols.Tls13, When = FaultCondition.CannotRekey,
        },
        new(["KeyUpdate*", "two KeyUpdates*"], FaultField.Alert, null, "", CannotRekey)
        {
            IsKernelOnly = true, Only = SslProtocols.Tls13, When = FaultCondition.CannotRekey,
        },
        new(["KeyUpdate*"], FaultField.Alert, null, "internal_error", CannotRekey)
        {
            IsKernelOnly = true, Only = SslProtocols.Tls13, When = FaultCondition.CannotRekey,
        },
        new(["KeyUpdate, requested*"], FaultField.Ending, null, Rekey, CannotAnswer)
        {
            IsKernelOnly = true, Only = SslProtocols.Tls13, When = FaultCondition.CannotAnswer,
        },
        new(["KeyUpdate, requested,*"], FaultField.Write, FaultOutcome.Works, Rekey, "RFC 8446, 4.6.3: as above, after the data that arrived with the message")
        {
            IsKernelOnly = true, Only = SslProtocols.Tls13, When = FaultCondition.CannotAnswer,
        },
        new(["KeyUpdate, requested*"], FaultField.Alert, null, "", CannotAnswer)
        {
            IsKernelOnly = true, Only = SslProtocols.Tls13, When = FaultCondition.CannotAnswer,
            MayBeAbsent = "the alert for what follows may be sent first",
        },
    ];

    public static IReadOnlyList<FaultDifference> Streams { get; } =
    [
        .. s_alerts,
        .. s_messages,
        new(
            ["a record of another version, then reset", "a record that is too long, then reset"],
            FaultField.Ending,
            "IOException",
            "IOException (ConnectionReset)",
            "RFC 8446, 6: the connection is lost either way; the kernel keeps one error of two")
        {
            IsKernelOnly = true, MayBeAbsent = "the reset may come after the record's error",
        },
    ];

    /// <summary>Gets the differences of a connection that is written to while the fault arrives, as HTTP/2 does.</summary>
    public static IReadOnlyList<FaultDifference> DuringSends { get; } =
    [
        new(
            [
                "major version", "minor version", "text", "SSL 2", "noise", "high length bit", "a record of another version*",
                "KeyUpdate and a record of another version",
            ],
            FaultField.Alert,
            null,
            "bad_record_mac",
            SentFirst)
        {
            IsKernelOnly = true, When = FaultCondition.KernelReceives, MayBeAbsent = IfSentFirst,
        },
        new(["*"], FaultField.Alert, "record_overflow", "bad_record_mac", SentFirst)
        {
            IsKernelOnly = true, When = FaultCondition.KernelReceives, MayBeAbsent = IfSentFirst,
        },
    ];

    /// <summary>Gets the same differences as passed on by HttpClient and Kestrel.</summary>
    public static IReadOnlyList<FaultDifference> Http { get; } =
    [
        .. s_alerts,
        .. s_messages.SelectMany(AsPassedOn).Select(static d => d with { MayBeAbsent = ByHttp }),
        .. DuringSends,
    ];

    /// <summary>Gets the differences as seen by an application on Kestrel.</summary>
    public static IReadOnlyList<FaultDifference> Kestrel { get; } =
    [
        .. Http,
        .. Http.Where(static d => d.Field == FaultField.Ending && d.Actual == "IOException")
            .Select(static d => d with { Actual = "ConnectionResetException", MayBeAbsent = ByHttp }),
        new(
            ["*"],
            FaultField.Ending,
            "IOException",
            "ConnectionResetException",
            "RFC 8446, 6.2: a fatal alert ends the connection; the exception is an IOException that says so"),
    ];

    /// <summary>
    /// Returns the difference as passed on by HTTP: HTTP/1.1 passes on the stream's exception; HTTP/2 wraps it.
    /// </summary>
    private static IEnumerable<FaultDifference> AsPassedOn(FaultDifference difference) => difference switch
    {
        { Field: FaultField.Ending, Actual: Rekey } => [difference, difference with { Actual = "IOException" }],
        { Field: FaultField.Ending, Actual: SocketFailure } => [difference with { Actual = "IOException" }],
        _ => [difference],
    };
}

using System.Net.Security;
using System.Security.Authentication;
using KernelTls.Tool.Peers;

namespace KernelTls.Tool.Commands;

/// <summary>Contains the output of <c>ktls probe</c>. This is the layout of the JSON document.</summary>
internal sealed record ProbeReport(
    string Peer,
    string Verdict,
    ProbeReport.HandshakeReport Handshake,
    ProbeReport.OffloadReport Offload,
    ProbeReport.TicketReport Tickets,
    ProbeReport.RecordReport Records,
    ProbeReport.KeyUpdateReport KeyUpdate)
{
    /// <summary>Describes the handshake.</summary>
    /// <param name="Protocol">The version.</param>
    /// <param name="CipherSuite">The suite.</param>
    /// <param name="ApplicationProtocol">The negotiated ALPN protocol, or an empty string.</param>
    /// <param name="Milliseconds">
    /// The time from the ClientHello to the end of the handshake, with the stock SslStream.
    /// </param>
    /// <param name="InboundBytes">The number of bytes from the peer.</param>
    /// <param name="Certificate">The peer's certificate.</param>
    /// <param name="CertificateRequested">
    /// Whether the peer requested a certificate of this end, which has none, or <see langword="null"/> if it has one.
    /// </param>
    internal sealed record HandshakeReport(
        SslProtocols Protocol,
        TlsCipherSuite CipherSuite,
        string ApplicationProtocol,
        double Milliseconds,
        long InboundBytes,
        CertificateValidator.CertificateFacts? Certificate,
        bool? CertificateRequested);

    /// <summary>Describes the data paths.</summary>
    /// <param name="Send">The data path of the sending direction.</param>
    /// <param name="SendReason">The reason why it is not the kernel, or None.</param>
    /// <param name="Receive">The data path of the receiving direction.</param>
    /// <param name="ReceiveReason">The reason why it is not the kernel, or None.</param>
    /// <param name="KernelImplementsCipher">Whether some version of the kernel implements the cipher.</param>
    /// <param name="Counters">
    /// The changes of the kernel's counters during the probe, on the whole machine or in the container.
    /// </param>
    internal sealed record OffloadReport(
        KtlsDataPath Send,
        KtlsFallbackReason SendReason,
        KtlsDataPath Receive,
        KtlsFallbackReason ReceiveReason,
        bool KernelImplementsCipher,
        IReadOnlyDictionary<string, long> Counters)
    {
        /// <summary>Gets a value that indicates whether both directions are in the kernel.</summary>
        public bool IsComplete => SendReason == KtlsFallbackReason.None && ReceiveReason == KtlsFallbackReason.None;
    }

    /// <summary>Describes the session tickets.</summary>
    /// <param name="ControlRecords">
    /// The number of encrypted records after the handshake without data, usually session tickets.
    /// </param>
    /// <param name="ControlBytes">Their total length.</param>
    /// <param name="Resumed">
    /// Whether a second connection resumed the session of the first, or <see langword="null"/> if that was not tried.
    /// </param>
    internal sealed record TicketReport(int ControlRecords, long ControlBytes, bool? Resumed);

    /// <summary>Describes the peer's records with data.</summary>
    /// <param name="Count">The number of records.</param>
    /// <param name="Bytes">The number of bytes of data.</param>
    /// <param name="Smallest">The bytes of data in the smallest record.</param>
    /// <param name="Median">The bytes of data in the median record.</param>
    /// <param name="Largest">The bytes of data in the largest record, at most 16384.</param>
    /// <param name="Padded">
    /// The number of records with padding (RFC 8446, section 5.4), or <see langword="null"/> if it cannot be detected
    /// for this version or cipher.
    /// </param>
    /// <param name="PaddingBytes">The total length of the padding.</param>
    /// <param name="Ending">Closed, Quiet, Enough or Broken: how the peer's response ended.</param>
    /// <param name="Detail">The error if the connection broke.</param>
    internal sealed record RecordReport(
        int Count, long Bytes, int Smallest, int Median, int Largest, int? Padded, long PaddingBytes, Conversation.EndingKind Ending, string Detail);

    /// <summary>Describes the result of a KeyUpdate.</summary>
    /// <param name="Outcome">The result.</param>
    /// <param name="Detail">The details as text.</param>
    internal sealed record KeyUpdateReport(KeyUpdateOutcome Outcome, string Detail);

    internal enum KeyUpdateOutcome
    {
        /// <summary>The connection does not use TLS 1.3, or this process cannot send a KeyUpdate.</summary>
        NotTried,

        /// <summary>The peer read data under the new key and changed its own key as requested.</summary>
        Answered,

        /// <summary>The peer read data under the new key. Whether it changed its own could not be detected.</summary>
        Accepted,

        /// <summary>The connection failed.</summary>
        Refused,

        /// <summary>The peer sent nothing afterwards.</summary>
        Unknown,
    }
}

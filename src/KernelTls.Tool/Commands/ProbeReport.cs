using System.Net.Security;
using System.Security.Authentication;
using KernelTls.Tool.Peers;

namespace KernelTls.Tool.Commands;

/// <summary>Everything <c>ktls probe</c> says; the JSON document's layout.</summary>
internal sealed record ProbeReport(
    string Peer,
    string Verdict,
    ProbeReport.HandshakeReport Handshake,
    ProbeReport.OffloadReport Offload,
    ProbeReport.TicketReport Tickets,
    ProbeReport.RecordReport Records,
    ProbeReport.KeyUpdateReport KeyUpdate)
{
    /// <param name="Protocol">The version.</param>
    /// <param name="CipherSuite">The suite.</param>
    /// <param name="ApplicationProtocol">What ALPN came to; empty for nothing.</param>
    /// <param name="Milliseconds">From ClientHello to the end of the handshake, by the stock stream.</param>
    /// <param name="InboundBytes">What the peer sent for it.</param>
    /// <param name="Certificate">What the peer showed.</param>
    internal sealed record HandshakeReport(
        SslProtocols Protocol,
        TlsCipherSuite CipherSuite,
        string ApplicationProtocol,
        double Milliseconds,
        long InboundBytes,
        CertificateJudge.CertificateFacts? Certificate);

    /// <param name="Send">Who encrypts.</param>
    /// <param name="SendReason">Why not the kernel, or None.</param>
    /// <param name="Receive">Who decrypts.</param>
    /// <param name="ReceiveReason">Why not the kernel, or None.</param>
    /// <param name="KernelImplementsCipher">There are kernels that do.</param>
    /// <param name="Counters">What the kernel counted meanwhile, on the whole machine or container.</param>
    internal sealed record OffloadReport(
        KtlsDataPath Send,
        KtlsFallbackReason SendReason,
        KtlsDataPath Receive,
        KtlsFallbackReason ReceiveReason,
        bool KernelImplementsCipher,
        IReadOnlyDictionary<string, long> Counters)
    {
        /// <summary>Both directions are in the kernel.</summary>
        public bool IsComplete => SendReason == KtlsFallbackReason.None && ReceiveReason == KtlsFallbackReason.None;
    }

    /// <param name="ControlRecords">Encrypted records behind the handshake that carried no data: session tickets, as a rule.</param>
    /// <param name="ControlBytes">Their length.</param>
    /// <param name="Resumed">A second connection resumed the first one's session; <see langword="null"/>: not tried.</param>
    internal sealed record TicketReport(int ControlRecords, long ControlBytes, bool? Resumed);

    /// <param name="Count">Records with data.</param>
    /// <param name="Bytes">Of data.</param>
    /// <param name="Smallest">Bytes of data in the smallest.</param>
    /// <param name="Median">In the middle one.</param>
    /// <param name="Largest">In the largest; 16384 is the most there can be.</param>
    /// <param name="Padded">Records with padding (RFC 8446, section 5.4); <see langword="null"/>: this version or cipher has none to see.</param>
    /// <param name="PaddingBytes">Its length in all.</param>
    /// <param name="Ending">Closed, Quiet, Enough or Broken: how the peer's answer ended.</param>
    /// <param name="Detail">What broke.</param>
    internal sealed record RecordReport(
        int Count, long Bytes, int Smallest, int Median, int Largest, int? Padded, long PaddingBytes, Conversation.EndingKind Ending, string Detail);

    /// <param name="Outcome">What became of a KeyUpdate.</param>
    /// <param name="Detail">More on it, for people.</param>
    internal sealed record KeyUpdateReport(KeyUpdateOutcome Outcome, string Detail);

    internal enum KeyUpdateOutcome
    {
        /// <summary>Not TLS 1.3, or nothing here that could send one.</summary>
        NotTried,

        /// <summary>The peer read what came under the new key, and changed its own when asked.</summary>
        Answered,

        /// <summary>The peer read what came under the new key; whether it changed its own was not seen.</summary>
        Accepted,

        /// <summary>The connection failed.</summary>
        Refused,

        /// <summary>The peer said nothing afterwards.</summary>
        Unknown,
    }
}

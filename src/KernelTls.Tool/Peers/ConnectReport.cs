using KernelTls.Tool.Commands;
using KernelTls.Tool.Output;
using KernelTls.Tool.Readers;

namespace KernelTls.Tool.Peers;

/// <summary>
/// Writes the messages of <c>ktls connect</c> to standard error, as text or as JSON objects with a member <c>event</c>.
/// </summary>
internal sealed class ConnectReport(Terminal terminal, string peer, IReadOnlyDictionary<string, long>? before)
{
    public void Connected(KtlsStream stream, CertificateValidator validator)
    {
        KtlsOffload offload = stream.Offload;
        if (terminal.IsJson)
        {
            terminal.JsonLine(
                new
                {
                    @event = "connected",
                    peer,
                    protocol = stream.SslProtocol,
                    cipherSuite = stream.NegotiatedCipherSuite,
                    applicationProtocol = stream.NegotiatedApplicationProtocol.ToString(),
                    resumed = stream.IsResumed,
                    send = offload.Send,
                    sendReason = offload.SendFallbackReason,
                    receive = offload.Receive,
                    receiveReason = offload.ReceiveFallbackReason,
                    certificate = validator.Facts,
                },
                toErrors: true);
            return;
        }

        string alpn = stream.NegotiatedApplicationProtocol.ToString();
        terminal.ErrorLine($"connected to {peer}: {Verdict.Name(stream.SslProtocol)} {stream.NegotiatedCipherSuite}{(alpn.Length > 0 ? ", ALPN " + alpn : "")}");
        terminal.ErrorLine($"certificate {validator.Facts?.Subject}{(validator.Facts is { Complaints.Count: > 0 } facts ? ", NOT TRUSTED: " + string.Join("; ", facts.Complaints) : "")}");
        terminal.ErrorLine($"offload     {offload}");
        foreach (KtlsFallbackReason reason in new[] { offload.SendFallbackReason, offload.ReceiveFallbackReason }
            .Distinct().Where(r => r != KtlsFallbackReason.None))
        {
            terminal.ErrorLine($"            {Advice.Named(reason)}");
        }
    }

    /// <summary>Writes an event that consists of a text.</summary>
    public void Say(string kind, string text)
    {
        if (terminal.IsJson)
        {
            terminal.JsonLine(new { @event = kind, detail = text }, toErrors: true);
        }
        else
        {
            terminal.ErrorLine($"{kind,-11} {text}");
        }
    }

    /// <summary>Writes the state, during the connection or at its end.</summary>
    /// <param name="kind"><c>state</c> or <c>closed</c>.</param>
    /// <param name="sent">The number of bytes of data sent.</param>
    /// <param name="received">The number of bytes of data received.</param>
    /// <param name="how">The state, or how the connection ended.</param>
    public void Count(string kind, long sent, long received, string how)
    {
        SortedDictionary<string, long> changes = KernelCounters.Changes(before, TlsStat.Read());
        if (terminal.IsJson)
        {
            terminal.JsonLine(new { @event = kind, how, sent, received, counters = changes }, toErrors: true);
        }
        else
        {
            terminal.ErrorLine($"{kind,-11} {how}; sent {sent} bytes, received {received}; kernel: {KernelCounters.Describe(changes)}");
        }
    }
}

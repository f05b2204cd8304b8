using System.Net.Security;
using System.Net.Sockets;
using System.Security.Authentication;
using KernelTls.Offload;
using KernelTls.Tool.Commands;
using KernelTls.Tool.Readers;

namespace KernelTls.Tool.Peers;

/// <summary>
/// Makes connections with this library to determine what is offloaded, whether sessions are resumed, and how the peer
/// handles a KeyUpdate.
/// </summary>
internal sealed class KernelConnections(PeerSettings peer, Conversation conversation, SslApplicationProtocol[] protocols)
{
    /// <summary>
    /// Gets the options for a connection that can change keys. If keys in the kernel cannot change, OpenSSL uses the
    /// socket.
    /// </summary>
    private static KtlsOptions RekeyOptions => KtlsPlatform.Probe().CanRekey
        ? new KtlsOptions { Mode = KtlsMode.Preferred }
        : new KtlsOptions { Mode = KtlsMode.Disabled, Fallback = KtlsFallback.OpenSsl };

    /// <summary>Makes one connection as an application would.</summary>
    public async Task<ProbeReport.OffloadReport> OffloadAsync(CancellationToken cancellationToken)
    {
        SortedDictionary<string, long>? before = KernelCounters.ReadFirst();
        await using KtlsStream stream = await OpenAsync(
            await peer.ConnectAsync(cancellationToken), new KtlsOptions { Mode = KtlsMode.Preferred }, cancellationToken);
        KtlsOffload offload = stream.Offload;
        bool known = CipherKinds.Of(stream.NegotiatedCipherSuite) != CipherKind.None;
        await HoldAsync(stream, cancellationToken);
        return new ProbeReport.OffloadReport(
            offload.Send,
            offload.SendFallbackReason,
            offload.Receive,
            offload.ReceiveFallbackReason,
            known,
            KernelCounters.Changes(before, TlsStat.Read()));
    }

    /// <summary>
    /// Makes one connection that leaves a session, and a second that resumes it if possible and changes its keys.
    /// </summary>
    /// <param name="usual">The records of a connection without a KeyUpdate. Padding hides the peer's KeyUpdate.</param>
    /// <param name="cancellationToken">The token to monitor for cancellation requests.</param>
    public async Task<(bool? Resumed, ProbeReport.KeyUpdateReport KeyUpdate)> ResumeAndUpdateAsync(
        ProbeReport.RecordReport usual, CancellationToken cancellationToken)
    {
        if (KtlsStream.ChooseEngine(RekeyOptions) is { Engine: Engine.Managed, Reason: var why })
        {
            return (null, NotTried(Advice.Named(why)));
        }

        if (Platform.Current.DirectReason is not KtlsFallbackReason.None and var reason)
        {
            return (null, NotTried(Advice.Named(reason)));
        }

        await using (KtlsStream first = await OpenAsync(await peer.ConnectAsync(cancellationToken), RekeyOptions, cancellationToken))
        {
            await HoldAsync(first, cancellationToken);
        }

        await using RecordRelay relay = await RecordRelay.StartAsync(await peer.ConnectAsync(cancellationToken), cancellationToken);
        await using KtlsStream second = await OpenAsync(relay.Client, RekeyOptions, cancellationToken);
        bool resumed = second.IsResumed;
        return (resumed, second.SslProtocol == SslProtocols.Tls13
            ? await UpdateAsync(second, relay.Inbound, usual, cancellationToken)
            : NotTried("KeyUpdate is a message of TLS 1.3. Earlier versions do not change keys."));
    }

    private static ProbeReport.KeyUpdateReport NotTried(string why) => new(ProbeReport.KeyUpdateOutcome.NotTried, why);

    private async Task<ProbeReport.KeyUpdateReport> UpdateAsync(
        KtlsStream stream, RecordScanner inbound, ProbeReport.RecordReport usual, CancellationToken cancellationToken)
    {
        const int KeyUpdateMessage = 5;
        int overhead = ObservedConnection.Overhead(stream.NegotiatedCipherSuite);
        int seen = inbound.Records.Count;
        long heard = 0;
        Conversation.Ending ending;
        try
        {
            await stream.UpdateSendKeyAsync(requestPeerUpdate: true, cancellationToken);
            ending = await conversation.HoldAsync(stream, count => heard += count, cancellationToken);
        }
        catch (IOException e)
        {
            return new(ProbeReport.KeyUpdateOutcome.Refused, PeerSettings.Describe(e));
        }

        bool answered = inbound.Records.Skip(seen).Any(r => r.Length == KeyUpdateMessage + overhead);
        return (heard, answered) switch
        {
            ( > 0, true) => new(ProbeReport.KeyUpdateOutcome.Answered, "The peer read data under the new key and changed its own key as requested."),
            ( > 0, false) when usual.Padded > 0 => new(ProbeReport.KeyUpdateOutcome.Accepted, "The peer read data under the new key. Its records are padded, so its own KeyUpdate cannot be detected."),
            ( > 0, false) => new(ProbeReport.KeyUpdateOutcome.Accepted, "The peer read data under the new key but did not change its own key as requested (RFC 8446, section 4.6.3)."),
            _ when usual.Count == 0 => new(ProbeReport.KeyUpdateOutcome.Unknown, "The peer sends no data without a KeyUpdate either, so it is unknown whether it accepted this one."),
            _ when ending.Kind == Conversation.EndingKind.Broken => new(ProbeReport.KeyUpdateOutcome.Refused, ending.Detail),
            _ when ending.Kind == Conversation.EndingKind.Closed => new(ProbeReport.KeyUpdateOutcome.Refused, "The peer closed the connection without a response."),
            _ => new(ProbeReport.KeyUpdateOutcome.Unknown, "The peer sent nothing afterwards, so it is unknown whether it accepted the KeyUpdate."),
        };
    }

    /// <summary>Holds a conversation.</summary>
    /// <exception cref="ToolFailedException">The peer refused this client.</exception>
    private async Task HoldAsync(KtlsStream stream, CancellationToken cancellationToken)
    {
        Conversation.Ending ending = await conversation.HoldAsync(stream, _ => { }, cancellationToken);
        if (ending.Kind == Conversation.EndingKind.Broken && peer.Refusal(ending.Detail) is { } refusal)
        {
            throw refusal;
        }
    }

    /// <summary>Returns a stream after its handshake. The stream owns the socket.</summary>
    private async Task<KtlsStream> OpenAsync(Socket socket, KtlsOptions options, CancellationToken cancellationToken)
    {
        CertificateValidator validator = new(peer.Insecure);
        KtlsStream stream = new(new NetworkStream(socket, ownsSocket: true), leaveInnerStreamOpen: false, options);
        try
        {
            await peer.PerformHandshakeAsync(
                token => stream.AuthenticateAsClientAsync(peer.NewOptions(validator, protocols), token), validator, scanner: null, cancellationToken);
            return stream;
        }
        catch
        {
            await stream.DisposeAsync();
            throw;
        }
    }
}

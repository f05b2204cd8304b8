using System.Net.Security;
using System.Net.Sockets;
using System.Security.Authentication;
using KernelTls.Offload;
using KernelTls.Tool.Commands;
using KernelTls.Tool.Readers;

namespace KernelTls.Tool.Peers;

/// <summary>Connections by this library: what is offloaded, whether sessions are resumed, what the peer makes of a KeyUpdate.</summary>
internal sealed class KernelConnections(PeerSettings peer, Conversation conversation, SslApplicationProtocol[] protocols)
{
    /// <summary>Where keys in the kernel cannot change, OpenSSL on the socket does it.</summary>
    private static KtlsOptions RekeyOptions => KtlsPlatform.CanRekey
        ? new KtlsOptions { Mode = KtlsMode.Preferred }
        : new KtlsOptions { Mode = KtlsMode.Disabled, DirectOpenSsl = true };

    /// <summary>One connection, as an application would have it.</summary>
    public async Task<ProbeReport.OffloadReport> OffloadAsync(CancellationToken cancellationToken)
    {
        SortedDictionary<string, long>? before = KernelCounters.ReadFirst();
        await using KtlsStream stream = await OpenAsync(
            await peer.ConnectAsync(cancellationToken), new KtlsOptions { Mode = KtlsMode.Preferred }, cancellationToken);
        KtlsOffload offload = stream.Offload;
        bool known = CipherKinds.Of(stream.NegotiatedCipherSuite) != CipherKind.None;
        await conversation.HoldAsync(stream, _ => { }, cancellationToken);
        return new ProbeReport.OffloadReport(
            offload.Send,
            offload.SendFallbackReason,
            offload.Receive,
            offload.ReceiveFallbackReason,
            known,
            KernelCounters.Changes(before, TlsStat.Read()));
    }

    /// <summary>A connection that leaves its session behind, and one that would resume it and changes its keys.</summary>
    /// <param name="padded">The peer pads its records, so that a KeyUpdate of its own does not show.</param>
    /// <param name="cancellationToken">Ends the command.</param>
    public async Task<(bool? Resumed, ProbeReport.KeyUpdateReport KeyUpdate)> ResumeAndUpdateAsync(
        bool padded, CancellationToken cancellationToken)
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
            await conversation.HoldAsync(first, _ => { }, cancellationToken);
        }

        await using RecordRelay relay = await RecordRelay.StartAsync(await peer.ConnectAsync(cancellationToken), cancellationToken);
        await using KtlsStream second = await OpenAsync(relay.Client, RekeyOptions, cancellationToken);
        bool resumed = second.IsResumed;
        return (resumed, second.SslProtocol == SslProtocols.Tls13
            ? await UpdateAsync(second, relay.Inbound, padded, cancellationToken)
            : NotTried("KeyUpdate is a message of TLS 1.3; earlier versions have one key."));
    }

    private static ProbeReport.KeyUpdateReport NotTried(string why) => new(ProbeReport.KeyUpdateOutcome.NotTried, why);

    private async Task<ProbeReport.KeyUpdateReport> UpdateAsync(
        KtlsStream stream, RecordScanner inbound, bool padded, CancellationToken cancellationToken)
    {
        const int KeyUpdateMessage = 5;
        int overhead = ObservedConnection.Overhead(stream.NegotiatedCipherSuite);
        int seen = inbound.Records.Count;
        long heard = 0;
        Conversation.Ending ending;
        try
        {
            await stream.UpdateKeysAsync(requestPeerUpdate: true, cancellationToken);
            ending = await conversation.HoldAsync(stream, count => heard += count, cancellationToken);
        }
        catch (IOException e)
        {
            return new(ProbeReport.KeyUpdateOutcome.Refused, PeerSettings.Describe(e));
        }

        bool answered = inbound.Records.Skip(seen).Any(r => r.Length == KeyUpdateMessage + overhead);
        return (heard, answered) switch
        {
            ( > 0, true) => new(ProbeReport.KeyUpdateOutcome.Answered, "The peer read what came under the new key, and changed its own when asked."),
            ( > 0, false) when padded => new(ProbeReport.KeyUpdateOutcome.Accepted, "The peer read what came under the new key; its records are padded, so that a KeyUpdate of its own does not show."),
            ( > 0, false) => new(ProbeReport.KeyUpdateOutcome.Accepted, "The peer read what came under the new key, and did not change its own, though asked (RFC 8446, section 4.6.3)."),
            _ when ending.Kind == Conversation.EndingKind.Broken => new(ProbeReport.KeyUpdateOutcome.Refused, ending.Detail),
            _ when ending.Kind == Conversation.EndingKind.Closed => new(ProbeReport.KeyUpdateOutcome.Refused, "The peer closed the connection without an answer."),
            _ => new(ProbeReport.KeyUpdateOutcome.Unknown, "The peer said nothing afterwards, so that it is not known whether it understood."),
        };
    }

    /// <summary>A stream whose handshake is done. The socket goes with it.</summary>
    private async Task<KtlsStream> OpenAsync(Socket socket, KtlsOptions options, CancellationToken cancellationToken)
    {
        CertificateJudge judge = new(peer.Insecure);
        KtlsStream stream = new(new NetworkStream(socket, ownsSocket: true), leaveInnerStreamOpen: false, options);
        try
        {
            await peer.ShakeHandsAsync(
                token => stream.AuthenticateAsClientAsync(peer.NewOptions(judge, protocols), token), judge, scanner: null, cancellationToken);
            return stream;
        }
        catch
        {
            await stream.DisposeAsync();
            throw;
        }
    }
}

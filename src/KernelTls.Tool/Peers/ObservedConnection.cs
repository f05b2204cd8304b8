using System.Diagnostics;
using System.Net.Security;
using System.Net.Sockets;
using System.Security.Authentication;
using KernelTls.Tool.Commands;

namespace KernelTls.Tool.Peers;

/// <summary>
/// Makes a connection with the stock SslStream and observes its records: what any client would get from this peer.
/// </summary>
internal sealed class ObservedConnection
{
    private readonly List<int> _plaintexts = [];
    private readonly List<int> _padding = [];
    private int _controlRecords;
    private long _controlBytes;

    private ObservedConnection(ProbeReport.HandshakeReport handshake) => Handshake = handshake;

    public ProbeReport.HandshakeReport Handshake { get; }

    public ProbeReport.RecordReport Records { get; private set; } = null!;

    public int ControlRecords => _controlRecords;

    public long ControlBytes => _controlBytes;

    /// <summary>Connects, performs the handshake and holds the conversation.</summary>
    /// <exception cref="ToolFailedException">The handshake failed, or the peer refused this client afterwards.</exception>
    public static async Task<ObservedConnection> RunAsync(
        PeerSettings peer, Conversation conversation, SslApplicationProtocol[] protocols, CancellationToken cancellationToken)
    {
        CertificateValidator validator = new(peer.Insecure);
        await using RecordStream tap = new(new NetworkStream(await peer.ConnectAsync(cancellationToken), ownsSocket: true));
        await using SslStream stream = new(tap);
        SslClientAuthenticationOptions options = peer.NewOptions(validator, protocols);
        options.LocalCertificateSelectionCallback = peer.Certificate is null ? validator.SelectNone : null;
        long started = Stopwatch.GetTimestamp();
        await peer.PerformHandshakeAsync(
            token => stream.AuthenticateAsClientAsync(options, token), validator, tap.Inbound, cancellationToken);
        ObservedConnection connection = new(new(
            stream.SslProtocol,
            stream.NegotiatedCipherSuite,
            stream.NegotiatedApplicationProtocol.ToString(),
            Math.Round(Stopwatch.GetElapsedTime(started).TotalMilliseconds, 1),
            tap.Inbound.Total,
            validator.Facts,
            peer.Certificate is null ? validator.IsCertificateRequested : null));
        await connection.ListenAsync(stream, tap, conversation, cancellationToken);
        if (connection.Records.Ending == Conversation.EndingKind.Broken && peer.Refusal(connection.Records.Detail) is { } refusal)
        {
            throw refusal;
        }

        return connection;
    }

    /// <summary>
    /// Returns the number of bytes of a TLS 1.3 record that are neither data nor padding: the inner type and the tag.
    /// </summary>
    public static int Overhead(TlsCipherSuite suite) => suite == TlsCipherSuite.TLS_AES_128_CCM_8_SHA256 ? 9 : 17;

    private async Task ListenAsync(SslStream stream, RecordStream tap, Conversation conversation, CancellationToken cancellationToken)
    {
        RecordScanner inbound = tap.Inbound;
        int seen = inbound.Records.Count;
        int overhead = Overhead(stream.NegotiatedCipherSuite);
        Conversation.Ending ending = await conversation.HoldAsync(
            stream,
            count =>
            {
                // The read took records without data, then one with data: the tap returns at most one record at a time.
                IReadOnlyList<RecordScanner.RecordHeader> records = inbound.Records;
                CountControl(records.Skip(seen).SkipLast(1));
                seen = records.Count;
                _plaintexts.Add(count);
                _padding.Add(records[^1].Length - overhead - count);
            },
            cancellationToken);

        // If TLS ended before TCP, the last record was close_notify.
        bool alert = ending.Kind == Conversation.EndingKind.Closed && !tap.Ended;
        CountControl(inbound.Records.Skip(seen).SkipLast(alert ? 1 : 0));
        Records = Summarize(stream.SslProtocol, ending);
    }

    private void CountControl(IEnumerable<RecordScanner.RecordHeader> records)
    {
        foreach (RecordScanner.RecordHeader record in records)
        {
            _controlRecords++;
            _controlBytes += record.Length;
        }
    }

    private ProbeReport.RecordReport Summarize(SslProtocols protocol, Conversation.Ending ending)
    {
        int[] sorted = [.. _plaintexts.Order()];
        bool visible = protocol == SslProtocols.Tls13 && sorted.Length > 0;
        return new ProbeReport.RecordReport(
            sorted.Length,
            sorted.Sum(n => (long)n),
            sorted.FirstOrDefault(),
            sorted.Length == 0 ? 0 : sorted[sorted.Length / 2],
            sorted.LastOrDefault(),
            visible ? _padding.Count(p => p > 0) : null,
            visible ? _padding.Sum(p => (long)Math.Max(p, 0)) : 0,
            ending.Kind,
            ending.Detail);
    }
}

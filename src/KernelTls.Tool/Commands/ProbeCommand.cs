using System.CommandLine;
using System.Globalization;
using System.Net.Security;
using KernelTls.Tool.Output;
using KernelTls.Tool.Peers;
using KernelTls.Tool.Readers;
using Spectre.Console;

namespace KernelTls.Tool.Commands;

/// <summary>Implements <c>ktls probe HOST:PORT</c>, which reports what a connection to this peer would use.</summary>
internal static class ProbeCommand
{
    private static readonly TimeSpan s_standardWait = TimeSpan.FromSeconds(3);

    public static Command Create()
    {
        Option<string?> path = new("--path")
        {
            Description = "The path to request by HTTP/1.1, to see the peer's records. Default: /.",
            HelpName = "PATH",
        };
        path.Validators.Add(result => PeerArguments.Expect(
            result, p => p.StartsWith('/') && p.All(c => c is > ' ' and <= '~'), "a path that begins with / and has printable ASCII only"));
        Option<bool> silent = new("--no-request") { Description = "Send no request, for peers that send first or do not use HTTP." };
        Option<TimeSpan?> wait = PeerArguments.Seconds("--wait", s_standardWait, "The time to wait for data from the peer.");
        Command command = new(
            "probe",
            "Connects four times and reports which directions would be in the kernel and why not, whether sessions are resumed, how the peer handles key updates, and the sizes and padding of its records.")
        {
            path, silent, wait,
        };
        PeerArguments peer = new(command);
        command.SetWork(async (arguments, terminal, cancellationToken) =>
        {
            PeerSettings settings = peer.Read(arguments);
            Conversation conversation = new(
                arguments.GetValue(silent) ? null : Conversation.HttpRequest(settings.ServerName, arguments.GetValue(path) ?? "/"),
                arguments.GetValue(wait) ?? s_standardWait);
            ProbeReport report = await ProbeAsync(settings, conversation, cancellationToken);
            if (terminal.IsJson)
            {
                terminal.Document(report);
            }
            else
            {
                Show(report, terminal);
            }

            return report.Offload.IsComplete ? ExitCode.Ok : ExitCode.No;
        });
        return command;
    }

    private static async Task<ProbeReport> ProbeAsync(PeerSettings peer, Conversation conversation, CancellationToken cancellationToken)
    {
        SslApplicationProtocol[] protocols = conversation.Request is null ? [] : [SslApplicationProtocol.Http11];
        ObservedConnection observed = await ObservedConnection.RunAsync(peer, conversation, protocols, cancellationToken);
        KernelConnections kernel = new(peer, conversation, protocols);
        ProbeReport.OffloadReport offload = await kernel.OffloadAsync(cancellationToken);
        (bool? resumed, ProbeReport.KeyUpdateReport keyUpdate) =
            await kernel.ResumeAndUpdateAsync(observed.Records, cancellationToken);
        return new ProbeReport(
            peer.Address.ToString(),
            Summarize(observed.Handshake, offload),
            observed.Handshake,
            offload,
            new(observed.ControlRecords, observed.ControlBytes, resumed),
            observed.Records,
            keyUpdate);
    }

    private static string Summarize(ProbeReport.HandshakeReport handshake, ProbeReport.OffloadReport offload)
    {
        string negotiated = $"{Verdict.Name(handshake.Protocol)}, {handshake.CipherSuite}";
        return (offload.SendReason, offload.ReceiveReason) switch
        {
            (KtlsFallbackReason.None, KtlsFallbackReason.None) => $"yes: both directions are in the kernel ({negotiated})",
            (KtlsFallbackReason.None, var reason) => $"partly: sending is in the kernel, receiving is not ({negotiated}). {Advice.Named(reason)}",
            (var reason, KtlsFallbackReason.None) => $"partly: receiving is in the kernel, sending is not ({negotiated}). {Advice.Named(reason)}",
            (var reason, _) => $"no: neither direction is in the kernel ({negotiated}). {Advice.Named(reason)}",
        };
    }

    private static void Show(ProbeReport report, Terminal terminal)
    {
        terminal.Headline($"{report.Peer}: {report.Verdict}", new Style(report.Offload.IsComplete ? Color.Green : Color.Yellow, decoration: Decoration.Bold));
        terminal.Line();
        ProbeReport.HandshakeReport handshake = report.Handshake;
        terminal.Line(string.Create(CultureInfo.InvariantCulture, $"handshake    {Verdict.Name(handshake.Protocol)} {handshake.CipherSuite}, {handshake.Milliseconds} ms, {handshake.InboundBytes} bytes from the peer{(handshake.ApplicationProtocol.Length > 0 ? ", ALPN " + handshake.ApplicationProtocol : "")}"));
        if (handshake.Certificate is { } certificate)
        {
            terminal.Line(string.Create(CultureInfo.InvariantCulture, $"certificate  {certificate.Subject}, by {certificate.Issuer}, until {certificate.NotAfter:yyyy-MM-dd}, chain of {certificate.ChainLength}, {(certificate.Complaints.Count == 0 ? "trusted" : "NOT TRUSTED: " + string.Join("; ", certificate.Complaints))}"));
        }

        if (handshake.CertificateRequested == true)
        {
            terminal.Line("client       the peer requests a client certificate and goes on without one (--certificate FILE)");
        }

        ProbeReport.OffloadReport offload = report.Offload;
        terminal.Line($"send         {Describe(offload.Send, offload.SendReason)}");
        terminal.Line($"receive      {Describe(offload.Receive, offload.ReceiveReason)}");
        terminal.Line($"cipher       {(offload.KernelImplementsCipher ? "one that kernels implement" : "none that any kernel implements")}");
        terminal.Line($"counters     {KernelCounters.Describe(offload.Counters)}");
        terminal.Line($"tickets      {report.Tickets.ControlRecords} control records ({report.Tickets.ControlBytes} bytes) after the handshake; session resumed: {Describe(report.Tickets.Resumed)}");
        terminal.Line($"key update   {report.KeyUpdate.Outcome}: {report.KeyUpdate.Detail}");
        terminal.Line($"records      {Describe(report.Records)}");
    }

    private static string Describe(KtlsDataPath path, KtlsFallbackReason reason) =>
        reason == KtlsFallbackReason.None ? path.ToString() : $"{path}. {Advice.Named(reason)}";

    private static string Describe(bool? resumed) => resumed switch { true => "yes", false => "no", null => "not tried" };

    private static string Describe(ProbeReport.RecordReport records)
    {
        string ending = records.Ending switch
        {
            Conversation.EndingKind.Quiet => "then it sent nothing more",
            Conversation.EndingKind.Enough => "and more follows",
            Conversation.EndingKind.Broken => $"then the connection broke: {records.Detail}",
            _ => "then it closed",
        };
        if (records.Count == 0)
        {
            return $"none: the peer sent no data, {ending}";
        }

        string padding = records.Padded switch
        {
            null => "no padding in this version",
            0 => "no padding",
            { } padded => $"{padded} padded, by {records.PaddingBytes} bytes in all: no gain from ExpectNoPadding with this peer",
        };
        return $"{records.Count} of {records.Smallest} to {records.Largest} bytes (median {records.Median}), {records.Bytes} bytes, {padding}; {ending}";
    }
}

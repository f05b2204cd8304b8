using System.CommandLine;
using System.Net.Security;
using System.Net.Sockets;
using KernelTls.Tool.Output;
using KernelTls.Tool.Peers;
using KernelTls.Tool.Readers;

namespace KernelTls.Tool.Commands;

/// <summary>
/// Implements <c>ktls connect HOST:PORT</c>, which copies standard input and output through one connection, as openssl
/// s_client does.
/// </summary>
internal static class ConnectCommand
{
    public static Command Create()
    {
        Option<string?> mode = new("--mode")
        {
            Description = "disabled, preferred or required: whether the connection can or must be in the kernel. Default: preferred.",
            HelpName = "MODE",
        };
        mode.Validators.Add(result => PeerArguments.Expect(
            result, m => m is "disabled" or "preferred" or "required", "disabled, preferred or required"));
        Option<string?> alpn = new("--alpn") { Description = "Protocols to offer, such as http/1.1,acme-tls/1.", HelpName = "NAMES" };
        alpn.Validators.Add(result => PeerArguments.Expect(
            result, names => names.Split(',').All(n => n.Length is > 0 and <= 255), "names of 1 to 255 characters, separated by commas"));
        Option<bool> commands = new("--commands")
        {
            Description = "Interpret lines of one letter as commands: k changes this end's key, K also requests that the peer change its own, s shows the state, Q quits. Enabled by default if standard input is a terminal.",
        };
        Option<bool> ignoreEnd = new("--ignore-eof") { Description = "Keep the connection open when standard input ends, until the peer closes." };
        Command command = new(
            "connect",
            "Connects and copies standard input to the peer and the peer's data to standard output. The data paths of the connection and the kernel's counters are written to standard error. At the end of standard input, close_notify is sent, and the peer's remaining data is read for at most --timeout.")
        {
            mode, alpn, commands, ignoreEnd,
        };
        PeerArguments peer = new(command);
        command.SetWork(async (arguments, terminal, cancellationToken) =>
        {
            KtlsOptions options = new()
            {
                Mode = arguments.GetValue(mode) switch
                {
                    "disabled" => KtlsMode.Disabled,
                    "required" => KtlsMode.Required,
                    _ => KtlsMode.Preferred,
                },
            };
            SslApplicationProtocol[] protocols = [.. (arguments.GetValue(alpn)?.Split(',') ?? []).Select(n => new SslApplicationProtocol(n))];
            InteractiveSession.Settings settings = new(
                arguments.GetValue(commands) || !Console.IsInputRedirected, arguments.GetValue(ignoreEnd));
            return await RunAsync(peer.Read(arguments), options, protocols, settings, terminal, cancellationToken);
        });
        return command;
    }

    private static async Task<int> RunAsync(
        PeerSettings peer,
        KtlsOptions options,
        SslApplicationProtocol[] protocols,
        InteractiveSession.Settings settings,
        Terminal terminal,
        CancellationToken cancellationToken)
    {
        SortedDictionary<string, long>? before = KernelCounters.ReadFirst();
        CertificateValidator validator = new(peer.Insecure);
        Socket socket = await peer.ConnectAsync(cancellationToken);
        await using KtlsStream stream = new(new NetworkStream(socket, ownsSocket: true), leaveInnerStreamOpen: false, options);
        await peer.PerformHandshakeAsync(
            token => stream.AuthenticateAsClientAsync(peer.NewOptions(validator, protocols), token), validator, scanner: null, cancellationToken);
        ConnectReport report = new(terminal, peer.Address.ToString(), before);
        report.Connected(stream, validator);
        using InteractiveSession session = new(stream, settings, report, peer);
        return await session.RunAsync(Console.OpenStandardInput(), StandardOutput.Open(), cancellationToken);
    }
}

using System.CommandLine;
using System.Security.Authentication;

namespace KernelTls.Lab.Streams;

/// <summary>What the server of streams is told.</summary>
/// <param name="ServerAddress">Where it listens.</param>
/// <param name="ServerPort">0: the system chooses.</param>
/// <param name="SendBufferSize">Bytes of each write, and of an answer; 0: it does not write.</param>
/// <param name="ReceiveBufferSize">Bytes of each read, and of a request; 0: nothing is expected but the end.</param>
/// <param name="TlsVersion">The only one.</param>
/// <param name="AllowTlsResume">Sessions may be resumed.</param>
internal sealed record StreamServerOptions(
    string ServerAddress, int ServerPort, int SendBufferSize, int ReceiveBufferSize, SslProtocols TlsVersion, bool AllowTlsResume)
{
    public const int ReferenceBufferSize = 32_768;

    public static Command CreateCommand()
    {
        Option<string> address = LabOptions.ServerAddress();
        Option<int> port = LabOptions.ServerPort(lowest: 0);
        Option<int> send = LabOptions.Number("--sendBufferSize", ReferenceBufferSize, 0, int.MaxValue, "Bytes of each write; 0: none.");
        Option<int> receive = LabOptions.Number("--receiveBufferSize", ReferenceBufferSize, 0, int.MaxValue, "Bytes of each read; 0: none.");
        Option<string> version = LabOptions.Choice("--tlsVersion", "The only version of TLS.", "1.3", "1.2");
        Option<bool> resume = LabOptions.Switch("--allowTlsResume", true, "Sessions may be resumed.");
        Command command = new("sslstream-server", "The other end of sslstream-client.") { address, port, send, receive, version, resume };
        command.SetAction(isServer: true, (arguments, cancellationToken) => new StreamServer(new StreamServerOptions(
            arguments.GetValue(address)!,
            arguments.GetValue(port),
            arguments.GetValue(send),
            arguments.GetValue(receive),
            VersionOf(arguments.GetValue(version)!),
            arguments.GetValue(resume))).RunAsync(cancellationToken));
        return command;
    }

    public static SslProtocols VersionOf(string version) => version == "1.2" ? SslProtocols.Tls12 : SslProtocols.Tls13;
}

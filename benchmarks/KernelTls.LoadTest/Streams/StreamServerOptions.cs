using System.CommandLine;
using System.Security.Authentication;

namespace KernelTls.LoadTest.Streams;

/// <summary>Represents the options of the stream server.</summary>
/// <param name="ServerAddress">The address on which the server listens.</param>
/// <param name="ServerPort">The port on which the server listens, or 0 to let the system choose a port.</param>
/// <param name="SendBufferSize">
/// The size of each write and of a response, in bytes. If it is 0, the server does not write.
/// </param>
/// <param name="ReceiveBufferSize">
/// The size of each read and of a request, in bytes. If it is 0, the server expects only the end of the stream.
/// </param>
/// <param name="TlsVersion">The only permitted TLS version.</param>
/// <param name="AllowTlsResume">Whether sessions may be resumed.</param>
internal sealed record StreamServerOptions(
    string ServerAddress, int ServerPort, int SendBufferSize, int ReceiveBufferSize, SslProtocols TlsVersion, bool AllowTlsResume)
{
    public const int ReferenceBufferSize = 32_768;

    public static Command CreateCommand()
    {
        Option<string> address = LoadTestOptions.ServerAddress();
        Option<int> port = LoadTestOptions.ServerPort(lowest: 0);
        Option<int> send = LoadTestOptions.Number("--sendBufferSize", ReferenceBufferSize, 0, int.MaxValue, "Bytes of each write; 0: none.");
        Option<int> receive = LoadTestOptions.Number("--receiveBufferSize", ReferenceBufferSize, 0, int.MaxValue, "Bytes of each read; 0: none.");
        Option<string> version = LoadTestOptions.Choice("--tlsVersion", "The only version of TLS.", "1.3", "1.2");
        Option<bool> resume = LoadTestOptions.Switch("--allowTlsResume", true, "Sessions may be resumed.");
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

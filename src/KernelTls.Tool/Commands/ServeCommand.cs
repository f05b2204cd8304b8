using System.CommandLine;
using System.Net;
using KernelTls.Tool.Peers;
using KernelTls.Tool.Serving;

namespace KernelTls.Tool.Commands;

/// <summary>Implements <c>ktls serve DIR</c>, a file server on Kestrel with kernel TLS.</summary>
internal static class ServeCommand
{
    private const int StandardPort = 8443;

    public static Command Create()
    {
        Argument<string> directory = new("DIR") { Description = "The directory to serve, including its subdirectories. Names that begin with a dot are not served. Symbolic links are followed." };
        directory.Validators.Add(result =>
        {
            if (result.Tokens is [{ Value: { } value }] && !Directory.Exists(value))
            {
                result.AddError($"'{value}': expected a directory that exists.");
            }
        });
        Option<IPAddress?> address = new("--address")
        {
            Description = "The address to listen on. Default: 127.0.0.1, for this machine only.",
            HelpName = "ADDRESS",
            CustomParser = result =>
            {
                if (IPAddress.TryParse(result.Tokens[0].Value, out IPAddress? parsed))
                {
                    return parsed;
                }

                result.AddError($"--address '{result.Tokens[0].Value}': expected an IP address, such as 127.0.0.1, 0.0.0.0 or ::.");
                return null;
            },
        };
        Option<int?> port = PeerArguments.Number(
            "--port", "PORT", $"The port to listen on, or 0 for any free port. Default: {StandardPort}.", p => p is >= 0 and <= IPEndPoint.MaxPort, "a port from 0 to 65535");
        Command command = new(
            "serve",
            "Serves the files of a directory over HTTPS, HTTP/1.1 and HTTP/2, and reports the data paths of each connection. Ctrl-C ends it.")
        {
            directory, address, port,
        };
        CertificateArguments certificate = new(command, "Default: a self-signed one for localhost.");
        command.SetWork(
            async (arguments, terminal, cancellationToken) =>
            {
                OwnCertificate own = certificate.Load(arguments) ?? new OwnCertificate(SelfSigned.Create(), []);
                await using FileServer server = new(
                    Path.GetFullPath(arguments.GetValue(directory)!),
                    new IPEndPoint(arguments.GetValue(address) ?? IPAddress.Loopback, arguments.GetValue(port) ?? StandardPort),
                    own.Certificate,
                    own.Chain,
                    new ServeReport(terminal));
                await server.RunAsync(cancellationToken);
                return ExitCode.Ok;
            },
            interrupted: ExitCode.Ok);
        return command;
    }
}

using System.CommandLine;
using System.Net;
using System.Security.Cryptography;
using System.Security.Cryptography.X509Certificates;
using KernelTls.Tool.Output;
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
        Option<int?> port = new("--port") { Description = $"The port to listen on, or 0 for any free port. Default: {StandardPort}.", HelpName = "PORT" };
        port.Validators.Add(result => PeerArguments.Expect(
            result, p => !int.TryParse(p, out int number) || number is >= 0 and <= IPEndPoint.MaxPort, "a port from 0 to 65535"));
        Option<string?> certificate = new("--certificate")
        {
            Description = "A PEM file with the certificate and its intermediates. Default: a self-signed one for localhost.",
            HelpName = "FILE",
        };
        Option<string?> key = new("--key") { Description = "The PEM file with the certificate's private key.", HelpName = "FILE" };
        Command command = new(
            "serve",
            "Serves the files of a directory over HTTPS, HTTP/1.1 and HTTP/2, and reports the data paths of each connection. Ctrl-C ends it.")
        {
            directory, address, port, certificate, key,
        };
        command.Validators.Add(result =>
        {
            if (result.GetValue(certificate) is null != result.GetValue(key) is null)
            {
                result.AddError("--certificate and --key: expected both or neither.");
            }
        });
        command.SetWork(
            async (arguments, terminal, cancellationToken) =>
            {
                using X509Certificate2 own = arguments.GetValue(certificate) is { } path
                    ? Load(path, arguments.GetValue(key)!, out X509Certificate2Collection chain)
                    : SelfSigned.Create(out chain);
                await using FileServer server = new(
                    Path.GetFullPath(arguments.GetValue(directory)!),
                    new IPEndPoint(arguments.GetValue(address) ?? IPAddress.Loopback, arguments.GetValue(port) ?? StandardPort),
                    own,
                    chain,
                    new ServeReport(terminal));
                await server.RunAsync(cancellationToken);
                return ExitCode.Ok;
            },
            interrupted: ExitCode.Ok);
        return command;
    }

    private static X509Certificate2 Load(string certificate, string key, out X509Certificate2Collection chain)
    {
        chain = [];
        try
        {
            chain.ImportFromPemFile(certificate);
            return X509Certificate2.CreateFromPemFile(certificate, key);
        }
        catch (Exception e) when (e is IOException or UnauthorizedAccessException or CryptographicException)
        {
            throw new ToolFailedException(
                ExitCode.WrongUsage,
                $"--certificate '{certificate}' with --key '{key}' cannot be used: {e.Message} Expected PEM files, with a key that has no password and matches the certificate.",
                e);
        }
    }
}

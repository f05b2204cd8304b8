using System.CommandLine;

namespace KernelTls.LoadTest.Http;

/// <summary>Represents the options of the HTTP server.</summary>
/// <param name="ServerAddress">The address on which the server listens.</param>
/// <param name="ServerPort">The port on which the server listens, or 0 to let the system choose a port.</param>
/// <param name="UseHttps">Whether the server uses TLS.</param>
/// <param name="HttpVersion">The only HTTP version of the server.</param>
/// <param name="ResponseSize">The size of the responses to /get and /post, in bytes.</param>
/// <param name="FileName">The name of a static file that the server creates and serves, or null for none.</param>
/// <param name="SizeInBytes">The size of the file, in bytes.</param>
internal sealed record HttpServerOptions(
    string ServerAddress, int ServerPort, bool UseHttps, Version HttpVersion, int ResponseSize, string? FileName, int SizeInBytes)
{
    public static Command CreateCommand()
    {
        Option<string> address = LoadTestOptions.ServerAddress();
        Option<int> port = LoadTestOptions.ServerPort(lowest: 0);
        Option<bool> https = LoadTestOptions.Switch("--useHttps", false, "TLS.");
        Option<string> version = LoadTestOptions.Choice("--httpVersion", "The only version of HTTP.", "1.1", "2.0");
        Option<int> responseSize = LoadTestOptions.Number("--responseSize", 0, 0, int.MaxValue, "Bytes of each answer.");
        Option<string?> fileName = new("--filename") { Description = "A file to make and to serve as a static one, by its name." };
        Option<int> size = LoadTestOptions.Number("--sizeInBytes", 1024, 0, int.MaxValue, "The file's size.");
        fileName.Validators.Add(result =>
        {
            if (result.Tokens is [{ Value: string name }] && (name.Length == 0 || Path.GetFileName(name) != name))
            {
                result.AddError($"--filename is '{name}'; expected a name without a path.");
            }
        });
        Command command = new("http-server", "Kestrel: GET /get, POST /post and a static file.")
        {
            address, port, https, version, responseSize, fileName, size,
        };
        command.SetAction(isServer: true, (arguments, cancellationToken) => new HttpServer(new HttpServerOptions(
            arguments.GetValue(address)!,
            arguments.GetValue(port),
            arguments.GetValue(https),
            Version.Parse(arguments.GetValue(version)!),
            arguments.GetValue(responseSize),
            arguments.GetValue(fileName),
            arguments.GetValue(size))).RunAsync(cancellationToken));
        return command;
    }
}

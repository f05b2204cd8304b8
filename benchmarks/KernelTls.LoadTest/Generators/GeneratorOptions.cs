using System.CommandLine;
using KernelTls.LoadTest.Http;

namespace KernelTls.LoadTest.Generators;

/// <summary>Represents the options of a client that is another program.</summary>
/// <param name="Generator">The program.</param>
/// <param name="Target">The address of the requests.</param>
/// <param name="RequestContentSize">The bytes that each request sends, or 0 for GET.</param>
/// <param name="Connections">The number of connections.</param>
/// <param name="Streams">The number of requests in progress on each connection, for HTTP/2.</param>
/// <param name="Threads">The number of threads.</param>
/// <param name="Warmup">The duration of the warm-up, in seconds.</param>
/// <param name="Duration">The duration of the measurement, in seconds.</param>
internal sealed record GeneratorOptions(
    Generator Generator, Uri Target, int RequestContentSize, int Connections, int Streams, int Threads, double Warmup, double Duration)
{
    public static Command CreateCommand()
    {
        Option<string> program = LoadTestOptions.Choice("--program", "What generates the load; it must be installed.", "wrk", "h2load");
        Option<string> address = LoadTestOptions.ServerAddress();
        Option<int> port = LoadTestOptions.ServerPort(lowest: 1);
        Option<bool> https = LoadTestOptions.Switch("--useHttps", false, "TLS.");
        Option<string> path = new("--path") { Description = "The server's path.", DefaultValueFactory = _ => HttpLoad.GetPath };
        Option<int> contentSize = LoadTestOptions.Number("--requestContentSize", 0, 0, int.MaxValue, "Bytes of each request, which is then a POST.");
        Option<int> connections = LoadTestOptions.Number("--connections", 100, 1, 100_000, "Connections at the same time.");
        Option<int> streams = LoadTestOptions.Number("--streams", 1, 1, 100, "h2load: requests under way on each connection.");
        Option<int> threads = LoadTestOptions.Number("--threads", 1, 1, 1000, "The program's threads.");
        Option<double> warmup = LoadTestOptions.Warmup();
        Option<double> duration = LoadTestOptions.Duration();
        Command command = new("http-generator-client", "wrk (HTTP/1.1) or h2load (HTTP/2): as many requests as can be, of one kind.")
        {
            program, address, port, https, path, contentSize, connections, streams, threads, warmup, duration,
        };
        command.SetAction(isServer: false, (arguments, cancellationToken) => new GeneratorLoad(new GeneratorOptions(
            arguments.GetValue(program) == "wrk" ? new Wrk() : new H2Load(),
            new UriBuilder(
                arguments.GetValue(https) ? Uri.UriSchemeHttps : Uri.UriSchemeHttp,
                arguments.GetValue(address)!,
                arguments.GetValue(port),
                arguments.GetValue(path)).Uri,
            arguments.GetValue(contentSize),
            arguments.GetValue(connections),
            arguments.GetValue(streams),
            arguments.GetValue(threads),
            arguments.GetValue(warmup),
            arguments.GetValue(duration))).RunAsync(cancellationToken));
        return command;
    }
}

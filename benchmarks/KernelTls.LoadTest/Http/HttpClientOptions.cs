using System.CommandLine;

namespace KernelTls.LoadTest.Http;

/// <summary>Represents the options of the HTTP client.</summary>
internal sealed record HttpClientOptions
{
    public required string ServerAddress { get; init; }

    public required int ServerPort { get; init; }

    public required bool UseHttps { get; init; }

    public required Version HttpVersion { get; init; }

    public required bool IsPost { get; init; }

    /// <summary>Gets a value that indicates whether requests are unary gRPC calls.</summary>
    public required bool IsCall { get; init; }

    /// <summary>Gets the path, which begins with a slash.</summary>
    public required string Path { get; init; }

    /// <summary>
    /// Gets the required sizes of the responses, in bytes, which take turns. If there are several, the path's last segment is the size.
    /// </summary>
    public required IReadOnlyList<int> ResponseSizes { get; init; }

    public required int RequestContentSize { get; init; }

    public required int RequestContentWriteSize { get; init; }

    public required bool RequestContentFlushAfterWrite { get; init; }

    public required bool RequestContentUnknownLength { get; init; }

    /// <summary>Gets the names and values of the additional headers.</summary>
    public required IReadOnlyList<(string Name, string Value)> Headers { get; init; }

    public required int NumberOfHttpClients { get; init; }

    public required int ConcurrencyPerHttpClient { get; init; }

    /// <summary>Gets the maximum number of connections per server, or 0 for no limit.</summary>
    public required int Http11MaxConnectionsPerServer { get; init; }

    public required bool Http20EnableMultipleConnections { get; init; }

    public required bool CollectRequestTimings { get; init; }

    /// <summary>Gets the requests per second of all clients, or 0 for as many as can be.</summary>
    public required int Rate { get; init; }

    public required double Warmup { get; init; }

    public required double Duration { get; init; }

    public static Command CreateCommand()
    {
        const int ReferenceWriteSize = 81_920;
        Option<string> address = LoadTestOptions.ServerAddress();
        Option<int> port = LoadTestOptions.ServerPort(lowest: 1);
        Option<bool> https = LoadTestOptions.Switch("--useHttps", false, "TLS.");
        Option<string> version = LoadTestOptions.Choice("--httpVersion", "The only version of HTTP.", "1.1", "2.0");
        Option<string> scenario = LoadTestOptions.Choice("--scenario", "What is asked; grpc is a unary call.", "get", "post", "grpc");
        Option<string?> path = new("--path") { Description = "The server's path; default: /get or /post." };
        Option<int[]> responseSizes = LoadTestOptions.Sizes(
            "--responseSize", "Bytes that each answer must have; sizes with commas between take turns, and the client asks for /get/SIZE.");
        Option<int> contentSize = LoadTestOptions.Number("--requestContentSize", 0, 0, int.MaxValue, "Bytes of each request; not for get.");
        Option<int> writeSize =
            LoadTestOptions.Number("--requestContentWriteSize", ReferenceWriteSize, 1, int.MaxValue, "Bytes of each write of a request.");
        Option<bool> flush = LoadTestOptions.Switch("--requestContentFlushAfterWrite", false, "Flush after each write of a request.");
        Option<bool> unknown = LoadTestOptions.Switch("--requestContentUnknownLength", false, "Requests have no Content-Length.");
        Option<string[]> headers = new("--header")
        {
            Description = "NAME:VALUE, for each request; repeatable.",
            DefaultValueFactory = _ => [],
        };
        Option<int> clients = LoadTestOptions.Number("--numberOfHttpClients", 1, 1, 10_000, "HttpClients, each with connections of its own.");
        Option<int> concurrency =
            LoadTestOptions.Number("--concurrencyPerHttpClient", 1, 1, 100_000, "Requests that each HttpClient has under way.");
        Option<int> http11Connections =
            LoadTestOptions.Number("--http11MaxConnectionsPerServer", 0, 0, 100_000, "Connections of each HttpClient; 0: no limit.");
        Option<bool> http2Connections =
            LoadTestOptions.Switch("--http20EnableMultipleConnections", true, "HTTP/2 opens another connection when one is full.");
        Option<bool> timings = LoadTestOptions.Switch("--collectRequestTimings", false, "Percentiles of the times of requests.");
        Option<int> rate = LoadTestOptions.Number("--rate", 0, 0, 10_000_000, "Requests per second of all clients; 0: as many as can be.");
        Option<double> warmup = LoadTestOptions.Warmup();
        Option<double> duration = LoadTestOptions.Duration();
        path.Validators.Add(result =>
        {
            if (result.Tokens is [{ } token] && !token.Value.StartsWith('/'))
            {
                result.AddError($"--path is '{token.Value}'; expected something that begins with a slash.");
            }
        });
        headers.Validators.Add(result =>
        {
            foreach (string header in result.Tokens.Select(t => t.Value).Where(h => h.IndexOf(':', StringComparison.Ordinal) <= 0))
            {
                result.AddError($"--header is '{header}'; expected NAME:VALUE.");
            }
        });
        Command command = new("http-client", "HttpClient: as many requests as can be, of one kind.")
        {
            address, port, https, version, scenario, path, responseSizes, contentSize, writeSize, flush, unknown, headers, clients,
            concurrency, http11Connections, http2Connections, timings, rate, warmup, duration,
        };
        command.Validators.Add(result =>
        {
            int size = result.ValueOf(contentSize);
            switch (result.ValueOf(scenario))
            {
                case "get" when size != 0:
                    result.AddError($"--requestContentSize is {size}; the scenario get has no content.");
                    break;
                case "post" when size == 0:
                    result.AddError("--requestContentSize is 0; the scenario post has content.");
                    break;
                case "grpc" when result.ValueOf(version) != "2.0":
                    result.AddError("--httpVersion is 1.1; the scenario grpc needs 2.0.");
                    break;
            }

            if (result.ValueOf(responseSizes).Length > 1 && (result.ValueOf(scenario) != "get" || result.GetResult(path)?.GetValueOrDefault<string?>() is not (null or HttpLoad.GetPath)))
            {
                result.AddError("--responseSize has several sizes; they are for the scenario get and its own path.");
            }
        });
        command.SetAction(isServer: false, (arguments, cancellationToken) =>
        {
            bool isPost = arguments.GetValue(scenario) == "post";
            return new HttpLoad(new HttpClientOptions
            {
                ServerAddress = arguments.GetValue(address)!,
                ServerPort = arguments.GetValue(port),
                UseHttps = arguments.GetValue(https),
                HttpVersion = Version.Parse(arguments.GetValue(version)!),
                IsPost = isPost,
                IsCall = arguments.GetValue(scenario) == "grpc",
                Path = arguments.GetValue(path) ?? (isPost ? HttpLoad.PostPath : HttpLoad.GetPath),
                ResponseSizes = arguments.GetValue(responseSizes)!,
                RequestContentSize = arguments.GetValue(contentSize),
                RequestContentWriteSize = arguments.GetValue(writeSize),
                RequestContentFlushAfterWrite = arguments.GetValue(flush),
                RequestContentUnknownLength = arguments.GetValue(unknown),
                Headers = [.. arguments.GetValue(headers)!.Select(Split)],
                NumberOfHttpClients = arguments.GetValue(clients),
                ConcurrencyPerHttpClient = arguments.GetValue(concurrency),
                Http11MaxConnectionsPerServer = arguments.GetValue(http11Connections),
                Http20EnableMultipleConnections = arguments.GetValue(http2Connections),
                CollectRequestTimings = arguments.GetValue(timings),
                Rate = arguments.GetValue(rate),
                Warmup = arguments.GetValue(warmup),
                Duration = arguments.GetValue(duration),
            }).RunAsync(cancellationToken);
        });
        return command;
    }

    private static (string Name, string Value) Split(string header)
    {
        int colon = header.IndexOf(':', StringComparison.Ordinal);
        return (header[..colon].Trim(), header[(colon + 1)..].Trim());
    }
}

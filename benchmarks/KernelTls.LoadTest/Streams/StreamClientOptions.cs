using System.CommandLine;
using System.Security.Authentication;

namespace KernelTls.LoadTest.Streams;

/// <summary>Represents the options of the stream client.</summary>
/// <param name="ServerAddress">The address of the server.</param>
/// <param name="ServerPort">The port of the server.</param>
/// <param name="Scenario">The scenario of each connection.</param>
/// <param name="Connections">The number of concurrent connections.</param>
/// <param name="SendBufferSize">
/// The size of each write and of a request, in bytes. If it is 0, the client does not write.
/// </param>
/// <param name="ReceiveBufferSize">
/// The size of each read and of a response, in bytes. If it is 0, the client does not read.
/// </param>
/// <param name="TlsVersion">The only permitted TLS version.</param>
/// <param name="AllowTlsResume">Whether sessions may be resumed.</param>
/// <param name="Warmup">The duration of the warm-up, in seconds.</param>
/// <param name="Duration">The duration of the measurement, in seconds.</param>
internal sealed record StreamClientOptions(
    string ServerAddress,
    int ServerPort,
    StreamScenario Scenario,
    int Connections,
    int SendBufferSize,
    int ReceiveBufferSize,
    SslProtocols TlsVersion,
    bool AllowTlsResume,
    double Warmup,
    double Duration)
{
    public static Command CreateCommand()
    {
        const int Reference = StreamServerOptions.ReferenceBufferSize;
        Option<string> address = LoadTestOptions.ServerAddress();
        Option<int> port = LoadTestOptions.ServerPort(lowest: 1);
        Option<string> scenario = LoadTestOptions.Choice("--scenario", "What is done.", Enum.GetNames<StreamScenario>());
        Option<int> connections = LoadTestOptions.Number("--connections", 1, 1, 100_000, "Connections at the same time.");
        Option<int> send = LoadTestOptions.Number("--sendBufferSize", Reference, 0, int.MaxValue, "Bytes of each write; 0: none.");
        Option<int> receive = LoadTestOptions.Number("--receiveBufferSize", Reference, 0, int.MaxValue, "Bytes of each read; 0: none.");
        Option<string> version = LoadTestOptions.Choice("--tlsVersion", "The only version of TLS.", "1.3", "1.2");
        Option<bool> resume = LoadTestOptions.Switch("--allowTlsResume", true, "Sessions may be resumed.");
        Option<double> warmup = LoadTestOptions.Warmup();
        Option<double> duration = LoadTestOptions.Duration();
        Command command = new("sslstream-client", "Throughput, handshakes or round trips of bare streams.")
        {
            address, port, scenario, connections, send, receive, version, resume, warmup, duration,
        };
        command.Validators.Add(result =>
        {
            bool sends = result.ValueOf(send) > 0;
            bool receives = result.ValueOf(receive) > 0;
            switch (result.ValueOf(scenario))
            {
                case nameof(StreamScenario.ReadWrite) when !sends && !receives:
                    result.AddError("--sendBufferSize and --receiveBufferSize are 0; ReadWrite needs one of them.");
                    break;
                case nameof(StreamScenario.Rps) when !sends || !receives:
                    result.AddError("--sendBufferSize or --receiveBufferSize is 0; Rps needs both.");
                    break;
            }
        });
        command.SetAction(isServer: false, (arguments, cancellationToken) => new StreamLoad(new StreamClientOptions(
            arguments.GetValue(address)!,
            arguments.GetValue(port),
            Enum.Parse<StreamScenario>(arguments.GetValue(scenario)!),
            arguments.GetValue(connections),
            arguments.GetValue(send),
            arguments.GetValue(receive),
            StreamServerOptions.VersionOf(arguments.GetValue(version)!),
            arguments.GetValue(resume),
            arguments.GetValue(warmup),
            arguments.GetValue(duration))).RunAsync(cancellationToken));
        return command;
    }
}

using System.CommandLine;
using System.Security.Authentication;

namespace KernelTls.Lab.Streams;

/// <summary>What the client of streams is told.</summary>
/// <param name="ServerAddress">The server's.</param>
/// <param name="ServerPort">The server's.</param>
/// <param name="Scenario">What is done on each connection.</param>
/// <param name="Connections">At the same time.</param>
/// <param name="SendBufferSize">Bytes of each write, and of a request; 0: it does not write.</param>
/// <param name="ReceiveBufferSize">Bytes of each read, and of an answer; 0: it does not read.</param>
/// <param name="TlsVersion">The only one.</param>
/// <param name="AllowTlsResume">Sessions may be resumed.</param>
/// <param name="Warmup">Seconds.</param>
/// <param name="Duration">Seconds.</param>
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
        Option<string> address = LabOptions.ServerAddress();
        Option<int> port = LabOptions.ServerPort(lowest: 1);
        Option<string> scenario = LabOptions.Choice("--scenario", "What is done.", Enum.GetNames<StreamScenario>());
        Option<int> connections = LabOptions.Number("--connections", 1, 1, 100_000, "Connections at the same time.");
        Option<int> send = LabOptions.Number("--sendBufferSize", Reference, 0, int.MaxValue, "Bytes of each write; 0: none.");
        Option<int> receive = LabOptions.Number("--receiveBufferSize", Reference, 0, int.MaxValue, "Bytes of each read; 0: none.");
        Option<string> version = LabOptions.Choice("--tlsVersion", "The only version of TLS.", "1.3", "1.2");
        Option<bool> resume = LabOptions.Switch("--allowTlsResume", true, "Sessions may be resumed.");
        Option<double> warmup = LabOptions.Warmup();
        Option<double> duration = LabOptions.Duration();
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

using System.CommandLine;

namespace KernelTls.Lab.Rehearsal;

/// <summary>What the rehearsal of two hosts is told.</summary>
/// <param name="Mtus">Of the link, one after the other.</param>
/// <param name="DelayMilliseconds">Of the link, each way.</param>
/// <param name="LossPercent">Of the link's packets, each way.</param>
/// <param name="Modes">Names of <see cref="RehearsalMode.All"/>.</param>
/// <param name="Scenarios">Names of <see cref="RehearsalScenario.All"/>.</param>
/// <param name="Concurrency">Requests, or connections, at the same time.</param>
/// <param name="Warmup">Seconds of each run.</param>
/// <param name="Duration">Seconds of each run.</param>
internal sealed record RehearsalOptions(
    int[] Mtus,
    int DelayMilliseconds,
    double LossPercent,
    string[] Modes,
    string[] Scenarios,
    int Concurrency,
    double Warmup,
    double Duration)
{
    public static Command CreateCommand()
    {
        Option<int[]> mtu = new("--mtu")
        {
            Description = "The link's MTU; several: one after the other.",
            DefaultValueFactory = _ => [1500, 9000],
            AllowMultipleArgumentsPerToken = true,
        };
        mtu.Validators.Add(result =>
        {
            const int Least = 1280;
            const int Most = 65_535;
            foreach (string token in result.Tokens.Select(t => t.Value))
            {
                if (int.TryParse(token, out int value) && value is < Least or > Most)
                {
                    result.AddError($"--mtu is {value}; expected {Least} to {Most}.");
                }
            }
        });
        Option<int> delay = LabOptions.Number("--delay", 1, 0, 1000, "Milliseconds from one host to the other.");
        Option<double> loss = new("--loss") { Description = "Percent of packets that are lost.", DefaultValueFactory = _ => 0 };
        Option<string[]> mode = Several("--mode", "How TLS is done.", RehearsalMode.All.Select(m => m.Name));
        Option<string[]> scenario = Several("--scenario", "What is done.", RehearsalScenario.All.Select(s => s.Name));
        Option<int> concurrency = LabOptions.Number("--concurrency", 4, 1, 10_000, "Requests or connections at the same time.");
        Option<double> warmup = LabOptions.Warmup();
        Option<double> duration = LabOptions.Duration();
        warmup.DefaultValueFactory = _ => 1;
        duration.DefaultValueFactory = _ => 2;
        Command command = new("rehearse", "Two hosts on one machine: servers and clients in network namespaces, joined by a link; needs root.")
        {
            mtu, delay, loss, mode, scenario, concurrency, warmup, duration,
        };
        command.SetAction(isServer: false, (arguments, cancellationToken) => new TwoHosts(new RehearsalOptions(
            arguments.GetValue(mtu)!,
            arguments.GetValue(delay),
            arguments.GetValue(loss),
            arguments.GetValue(mode)!,
            arguments.GetValue(scenario)!,
            arguments.GetValue(concurrency),
            arguments.GetValue(warmup),
            arguments.GetValue(duration))).RunAsync(cancellationToken));
        return command;
    }

    private static Option<string[]> Several(string name, string description, IEnumerable<string> names)
    {
        string[] all = [.. names];
        Option<string[]> option = new(name)
        {
            Description = $"{description} Default: all.",
            DefaultValueFactory = _ => all,
            AllowMultipleArgumentsPerToken = true,
        };
        option.AcceptOnlyFromAmong(all);
        return option;
    }
}

using System.CommandLine;

namespace KernelTls.LoadTest.Rehearsal;

/// <summary>Represents the options of the rehearsal with two hosts.</summary>
/// <param name="Mtus">The MTUs of the link, which are used one after another.</param>
/// <param name="DelayMilliseconds">The delay of the link in each direction, in milliseconds.</param>
/// <param name="LossPercent">The percentage of packets that the link loses in each direction.</param>
/// <param name="Modes">The names of <see cref="RehearsalMode.All"/> to run.</param>
/// <param name="Scenarios">The names of <see cref="RehearsalScenario.All"/> to run.</param>
/// <param name="Concurrency">The number of concurrent requests or connections.</param>
/// <param name="Warmup">The duration of the warm-up of each run, in seconds.</param>
/// <param name="Duration">The duration of each run, in seconds.</param>
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
        Option<int> delay = LoadTestOptions.Number("--delay", 1, 0, 1000, "Milliseconds from one host to the other.");
        Option<double> loss = new("--loss") { Description = "Percent of packets that are lost.", DefaultValueFactory = _ => 0 };
        Option<string[]> mode = Several("--mode", "How TLS is done.", RehearsalMode.All.Select(m => m.Name));
        Option<string[]> scenario = Several("--scenario", "What is done.", RehearsalScenario.All.Select(s => s.Name));
        Option<int> concurrency = LoadTestOptions.Number("--concurrency", 4, 1, 10_000, "Requests or connections at the same time.");
        Option<double> warmup = LoadTestOptions.Warmup();
        Option<double> duration = LoadTestOptions.Duration();
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

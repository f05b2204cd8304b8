using System.CommandLine;
using System.Text.Json;
using KernelTls.Bench.Report;
using KernelTls.Bench.Scenarios;

namespace KernelTls.Bench.Wall;

/// <summary>The part of the command line that measures by the clock.</summary>
internal static class WallCommands
{
    public const string Measure = "wall-measure";

    private const int CannotRunHere = 2;

    public static Command Create()
    {
        Option<string[]> scenarios = BenchCommand.ScenarioOption();
        Option<string[]> modes = BenchCommand.ModeOption();
        Option<string?> json = BenchCommand.JsonOption();
        Option<int> seconds = new("--seconds") { Description = "Of each row in each mode.", DefaultValueFactory = _ => 10 };
        Command command = new("wall", "The same by the clock, on a machine whose own kernel has kernel TLS.") { scenarios, modes, json, seconds };
        command.SetAction((arguments, cancellationToken) => BenchCommand.GuardAsync(async () =>
        {
            if (NativeMachine.ReasonToRefuse() is { } reason)
            {
                await Console.Error.WriteLineAsync($"bench: {reason}");
                return CannotRunHere;
            }

            TimeSpan length = TimeSpan.FromSeconds(Math.Max(1, arguments.GetValue(seconds)));
            WallResults results = await new WallRun(arguments.GetValue(scenarios)!, arguments.GetValue(modes)!, length, Console.Out)
                .RunAsync(cancellationToken);
            WallRun.Write(results, Console.Out);
            if (arguments.GetValue(json) is { } path)
            {
                await File.WriteAllTextAsync(path, JsonSerializer.Serialize(results, BenchJson.Default.WallResults), cancellationToken);
            }

            return BenchCommand.Ok;
        }));
        return command;
    }

    /// <summary>One row in one mode by the clock, in this process; the result is a line of JSON.</summary>
    public static Command CreateMeasure()
    {
        Argument<string> scenario = new("scenario");
        Argument<string> mode = new("mode");
        Argument<int> seconds = new("seconds");
        Command command = new(Measure, "One row in one mode by the clock, in this process.") { scenario, mode, seconds };
        command.Hidden = true;
        command.SetAction((arguments, _) => BenchCommand.GuardAsync(async () =>
        {
            (Row row, string chosen) = Row.Select(arguments.GetValue(scenario)!, arguments.GetValue(mode)!);
            await using Scenario running = row.Create?.Invoke(chosen) ?? throw new BenchFailedException($"{row.Name} counts memory, not time");
            WallMeasurement measured = await WallClock.MeasureAsync(
                row.Name, chosen, running, TimeSpan.FromSeconds(arguments.GetValue(seconds)));
            Console.Out.WriteLine(JsonSerializer.Serialize(measured, BenchJson.Default.WallMeasurement));
            return BenchCommand.Ok;
        }));
        return command;
    }
}

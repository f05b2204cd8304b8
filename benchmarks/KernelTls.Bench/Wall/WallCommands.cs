using System.CommandLine;
using System.Text.Json;
using KernelTls.Bench.Report;
using KernelTls.Bench.Scenarios;

namespace KernelTls.Bench.Wall;

/// <summary>Defines the commands that measure by the wall clock.</summary>
internal static class WallCommands
{
    public const string Measure = "wall-measure";

    private const int CannotRunHere = 2;

    public static Command Create() => CreateRun(
        "wall",
        "The same by the clock, on a machine whose own kernel has kernel TLS.",
        10,
        [.. Row.All.Select(row => row.Name)],
        NativeMachine.ReasonToRefuse,
        async (scenarios, modes, length, cancellationToken) =>
        {
            WallResults results = await new WallRun(scenarios, modes, length, Console.Out).RunAsync(cancellationToken);
            WallRun.Write(results, Console.Out);
            return (JsonSerializer.Serialize(results, BenchJson.Default.WallResults), BenchCommand.Ok);
        });

    public static Command CreateLoad() => CreateRun(
        "load",
        "Rows of load by the clock, on any machine of its own: pairs of the stock stream and each mode that it has.",
        2,
        LoadRun.Rows,
        NativeMachine.ReasonToRefuseClock,
        async (scenarios, modes, length, cancellationToken) =>
        {
            LoadResults results = await new LoadRun(scenarios, modes, length, Console.Out).RunAsync(cancellationToken);
            LoadRun.Write(results, Console.Out);
            return (
                JsonSerializer.Serialize(results, BenchJson.Default.LoadResults),
                results.Rows.Any(row => row.Failures > 0) ? BenchCommand.Failed : BenchCommand.Ok);
        });

    /// <param name="name">The name of the command.</param>
    /// <param name="description">The description of the command.</param>
    /// <param name="defaultSeconds">The default duration of each measurement, in seconds.</param>
    /// <param name="rows">The names of the rows.</param>
    /// <param name="reasonToRefuse">
    /// A function that returns the reason why this machine cannot measure, or null if it can.
    /// </param>
    /// <param name="run">A function that measures, prints the results, and returns them as JSON with the exit code.</param>
    private static Command CreateRun(
        string name,
        string description,
        int defaultSeconds,
        IReadOnlyList<string> rows,
        Func<string?> reasonToRefuse,
        Func<string[], string[], TimeSpan, CancellationToken, Task<(string Json, int ExitCode)>> run)
    {
        Option<string[]> scenarios = BenchCommand.ScenarioOption(rows);
        Option<string[]> modes = BenchCommand.ModeOption();
        Option<string?> json = BenchCommand.JsonOption();
        Option<int> seconds = new("--seconds") { Description = "Of each measurement.", DefaultValueFactory = _ => defaultSeconds };
        Command command = new(name, description) { scenarios, modes, json, seconds };
        command.SetAction((arguments, cancellationToken) => BenchCommand.GuardAsync(async () =>
        {
            if (reasonToRefuse() is { } reason)
            {
                await Console.Error.WriteLineAsync($"bench: {reason}");
                return CannotRunHere;
            }

            TimeSpan length = TimeSpan.FromSeconds(Math.Max(1, arguments.GetValue(seconds)));
            (string results, int exitCode) = await run(arguments.GetValue(scenarios)!, arguments.GetValue(modes)!, length, cancellationToken);
            if (arguments.GetValue(json) is { } path)
            {
                await File.WriteAllTextAsync(path, results, cancellationToken);
            }

            return exitCode;
        }));
        return command;
    }

    /// <summary>
    /// Creates the command that measures one row in one mode by the wall clock in this process. The result is one line
    /// of JSON.
    /// </summary>
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

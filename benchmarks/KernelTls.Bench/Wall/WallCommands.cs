using System.CommandLine;
using System.Text.Json;
using KernelTls.Bench.Generators;
using KernelTls.Bench.Report;
using KernelTls.Bench.Scenarios;

namespace KernelTls.Bench.Wall;

/// <summary>Defines the commands that measure by the wall clock.</summary>
internal static class WallCommands
{
    public const string Measure = "wall-measure";

    /// <summary>The command that warms up, writes an empty line, and measures once for each line that it reads.</summary>
    public const string MeasureOften = "load-measure";

    private const int CannotRunHere = 2;

    public static Command Create() => CreateRun(
        "wall",
        "The same by the clock, on a machine whose own kernel has kernel TLS.",
        10,
        [.. Row.All.Select(row => row.Name)],
        NativeMachine.ReasonToRefuse,
        async (scenarios, modes, length, _, cancellationToken) =>
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
        async (scenarios, modes, length, turns, cancellationToken) =>
        {
            LoadResults results = await new LoadRun(scenarios, modes, length, Console.Out, turns).RunAsync(cancellationToken);
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
        Func<string[], string[], TimeSpan, int, CancellationToken, Task<(string Json, int ExitCode)>> run)
    {
        Option<string[]> scenarios = BenchCommand.ScenarioOption(rows);
        Option<string[]> modes = BenchCommand.ModeOption();
        Option<string?> json = BenchCommand.JsonOption();
        Option<int> seconds = new("--seconds") { Description = "Of each measurement.", DefaultValueFactory = _ => defaultSeconds };
        Option<int> turns = new("--turns")
        {
            Description = "The most turns of a row of --load.",
            DefaultValueFactory = _ => LoadRun.DefaultMostTurns,
        };
        Command command = new(name, description) { scenarios, modes, json, seconds, turns };
        command.SetAction((arguments, cancellationToken) => BenchCommand.GuardAsync(async () =>
        {
            if (reasonToRefuse() is { } reason)
            {
                await Console.Error.WriteLineAsync($"bench: {reason}");
                return CannotRunHere;
            }

            TimeSpan length = TimeSpan.FromSeconds(Math.Max(1, arguments.GetValue(seconds)));
            (string results, int exitCode) = await run(
                arguments.GetValue(scenarios)!, arguments.GetValue(modes)!, length, Math.Max(1, arguments.GetValue(turns)), cancellationToken);
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
    public static Command CreateMeasure() => CreateChild(
        Measure,
        "One row in one mode by the clock, in this process.",
        (row, mode) => Row.Select(row, mode).Row.Create?.Invoke(mode) ?? throw new BenchFailedException($"{row} counts memory, not time"),
        async (row, mode, scenario, length) =>
            Write(await WallClock.MeasureAsync(row, mode, scenario, length)));

    /// <summary>Creates the command that measures one row of load in one mode repeatedly in this process.</summary>
    public static Command CreateMeasureOften() => CreateChild(
        MeasureOften,
        "One row of load in one mode by the clock, in this process, once for each line of input.",
        (row, mode) => ClientRow.Find(row)?.Create(mode) ?? Row.Find(row).Create!(mode),
        async (row, mode, scenario, length) =>
        {
            int operations = await WallClock.WarmUpAsync(scenario, length);
            await Console.Out.WriteLineAsync();
            while (await Console.In.ReadLineAsync() is not null)
            {
                Write(await WallClock.MeasureAsync(row, mode, scenario, operations, length));
            }
        });

    private static Command CreateChild(
        string name, string description, Func<string, string, Scenario> create, Func<string, string, Scenario, TimeSpan, Task> run)
    {
        Argument<string> scenario = new("scenario");
        Argument<string> mode = new("mode");
        Argument<int> seconds = new("seconds");
        Command command = new(name, description) { scenario, mode, seconds };
        command.Hidden = true;
        command.SetAction((arguments, _) => BenchCommand.GuardAsync(async () =>
        {
            (string row, string chosen) = (arguments.GetValue(scenario)!, arguments.GetValue(mode)!);
            await using Scenario running = create(row, chosen);
            await run(row, chosen, running, TimeSpan.FromSeconds(arguments.GetValue(seconds)));
            return BenchCommand.Ok;
        }));
        return command;
    }

    private static void Write(WallMeasurement measured) =>
        Console.Out.WriteLine(JsonSerializer.Serialize(measured, BenchJson.Default.WallMeasurement));
}

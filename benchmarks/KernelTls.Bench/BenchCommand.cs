using System.CommandLine;
using System.ComponentModel;
using System.Globalization;
using System.Net.Sockets;
using System.Security.Authentication;
using System.Text.Json;
using KernelTls.Bench.Generators;
using KernelTls.Bench.Modes;
using KernelTls.Bench.Report;
using KernelTls.Bench.Scenarios;
using KernelTls.Bench.Servers;
using KernelTls.Bench.Wall;

namespace KernelTls.Bench;

/// <summary>Defines the command line. Only this class maps outcomes to exit codes.</summary>
internal static class BenchCommand
{
    public const string Measure = "measure";

    /// <summary>The option of <see cref="Measure"/> that limits the rounds before the measured ones.</summary>
    public const string WarmUpRounds = "--warm-up-rounds";

    private const string Sample = "sample";
    public const string Crypto = "crypto";
    public const string Serve = "serve";

    public const int Ok = 0;
    public const int Failed = 1;

    private static readonly string[] s_rows = [.. Row.All.Select(row => row.Name)];

    public static RootCommand Create()
    {
        Option<string[]> scenarios = ScenarioOption(s_rows);
        Option<string[]> modes = ModeOption();
        Option<string?> json = JsonOption();
        Option<bool> goals = GoalsOption();
        Option<bool> part = new("--part") { Description = "Of a table that 'join' prints.", Hidden = true };
        RootCommand command = new(
            "Measures what operations cost, by scenario and mode, each in a process of its own. Figures are instruction counts only "
            + "on a machine of eng/lab --instruction-count.")
        {
            scenarios,
            modes,
            json,
            goals,
            part,
            MeasureCommand(),
            CryptoCommand(),
            ServeCommand(),
            ProfileCommand(),
            SampleCommand(),
            CompareCommand(),
            ReportCommand(),
            WallCommands.Create(),
            WallCommands.CreateLoad(),
            WallCommands.CreateMeasure(),
            WallCommands.CreateMeasureOften(),
            ListCommand(),
            ShareCommand(),
            JoinCommand(),
        };
        command.SetAction((arguments, cancellationToken) => GuardAsync(async () =>
        {
            Comparison comparison = new(arguments.GetValue(scenarios)!, arguments.GetValue(modes)!, Console.Out, BenchProcess.RunSteadyAsync);
            string? path = arguments.GetValue(json);
            BenchResults results = await comparison.RunAsync(soFar => soFar.WriteTo(path), cancellationToken);
            return arguments.GetValue(part)
                ? results.Failures.Count == 0 ? Ok : Failed
                : Conclude(results, arguments.GetValue(goals));
        }));
        return command;
    }

    /// <summary>Writes the table and returns the exit code.</summary>
    private static int Conclude(BenchResults results, bool goals)
    {
        bool goalsHold = new ResultTable(results).Write(Console.Out);
        return results.Failures.Count == 0 && (goalsHold || !goals) && !results.ImpossibleGoals.Any() ? Ok : Failed;
    }

    public static Option<string[]> ScenarioOption(IReadOnlyList<string> rows)
    {
        Option<string[]> option = ListOption("--scenario", "A row of the table; default: all.", [.. rows]);
        option.AcceptOnlyFromAmong([.. rows]);
        return option;
    }

    public static Option<string[]> ModeOption()
    {
        Option<string[]> option = ListOption("--mode", "A mode; default: those of each row.", []);
        option.AcceptOnlyFromAmong([.. ModeTable.Names]);
        return option;
    }

    public static Option<string?> JsonOption() =>
        new("--json") { Description = "Writes the results to this file.", HelpName = "PATH" };

    private static Option<bool> GoalsOption() => new("--goals") { Description = "A missed goal is a failure." };

    private static Option<string[]> ListOption(string name, string description, string[] defaults)
    {
        Option<string[]> option = new(name)
        {
            Description = description,
            HelpName = "NAME",
            AllowMultipleArgumentsPerToken = true,
            DefaultValueFactory = _ => defaults,
        };
        return option;
    }

    /// <summary>
    /// Creates the command that measures one scenario in one mode in this process. The result is one line of JSON.
    /// </summary>
    private static Command MeasureCommand()
    {
        Option<int> rounds = new(WarmUpRounds)
        {
            Description = "Measure after at most so many rounds, settled or not: for tests, to which figures do not matter.",
            DefaultValueFactory = _ => Meter.MostWarmUpRounds,
        };
        Command command = OfOneMode(
            Measure,
            "One scenario in one mode, in this process.",
            async (row, mode, arguments) =>
            {
                await using Scenario? scenario = row.Create?.Invoke(mode);
                Measurement measured = scenario is null
                    ? await row.MeasureMemory!(mode)
                    : row.IsStart ? await Meter.MeasureStartAsync(row.Name, mode, scenario)
                    : await Meter.MeasureAsync(row.Name, mode, scenario, arguments.GetValue(rounds));
                Console.Out.WriteLine(JsonSerializer.Serialize(measured, BenchJson.Default.Measurement));
            });
        command.Add(rounds);
        return command;
    }

    private static Command ProfileCommand() => OfOneMode(
        "profile",
        "Where the instructions of one scenario in one mode go, measured as they are counted.",
        async (row, mode, _) =>
        {
            if (row.IsStart)
            {
                throw new BenchFailedException($"{row.Name} is what a process does first: it is over before perf has enough of it");
            }

            BenchProcess.PrepareMachine();
            Console.Out.Write(await BenchProcess.RunProfiledAsync([Sample, row.Name, mode], CancellationToken.None));
        });

    private static Command SampleCommand() => OfOneMode(
        Sample,
        "As profile, in this process.",
        async (row, mode, _) =>
        {
            await using Scenario scenario = row.Create?.Invoke(mode)
                ?? throw new BenchFailedException($"{row.Name} counts memory, not instructions");
            await Meter.ProfileAsync(scenario);
        });

    private static Command OfOneMode(string name, string description, Func<Row, string, ParseResult, Task> run)
    {
        Argument<string> scenario = new("scenario");
        Argument<string> mode = new("mode");
        Command command = new(name, description) { scenario, mode };
        command.Hidden = true;
        command.SetAction((arguments, _) => GuardAsync(async () =>
        {
            (Row row, string chosen) = Row.Select(arguments.GetValue(scenario)!, arguments.GetValue(mode)!);
            await run(row, chosen, arguments);
            return Ok;
        }));
        return command;
    }

    /// <summary>
    /// Creates the command that lists rows and modes. The eng/bench script checks names with it before it boots a
    /// machine.
    /// </summary>
    private static Command ListCommand()
    {
        Command command = new("list", "The names of rows and modes.") { Hidden = true };
        command.SetAction(_ =>
        {
            Console.Out.WriteLine($"scenario: {string.Join(' ', s_rows.Union(LoadRun.Rows))}");
            Console.Out.WriteLine($"mode: {string.Join(' ', ModeTable.Names)}");
        });
        return command;
    }

    /// <summary>
    /// Creates the command that distributes rows over machines. The eng/bench script starts one machine for each line,
    /// which contains the number of measurements and the rows.
    /// </summary>
    private static Command ShareCommand()
    {
        Argument<int> machines = new("machines");
        Option<string[]> scenarios = ScenarioOption(s_rows);
        Option<string[]> modes = ModeOption();
        Command command = new("share", "Rows for machines that measure at the same time.") { machines, scenarios, modes };
        command.Hidden = true;
        command.SetAction((arguments, _) => GuardAsync(() =>
        {
            var shares = Row.Share(arguments.GetValue(scenarios)!, arguments.GetValue(modes)!, arguments.GetValue(machines));
            foreach ((string[] rows, int measurements) in shares)
            {
                Console.Out.WriteLine($"{measurements} {string.Join(' ', rows)}");
            }

            return Task.FromResult(Ok);
        }));
        return command;
    }

    /// <summary>Creates the command that joins the results of several machines into one table for eng/bench.</summary>
    private static Command JoinCommand()
    {
        Argument<string[]> parts = new("parts") { Arity = ArgumentArity.OneOrMore };
        Option<string?> json = JsonOption();
        Option<bool> goals = GoalsOption();
        Command command = new("join", "One table of what several machines of one kind have measured.") { parts, json, goals };
        command.Hidden = true;
        command.SetAction((arguments, _) => GuardAsync(() =>
        {
            BenchResults results = BenchResults.Join([.. arguments.GetValue(parts)!.Select(BenchResults.Read)]);
            results.WriteTo(arguments.GetValue(json));
            return Task.FromResult(Conclude(results, arguments.GetValue(goals)));
        }));
        return command;
    }

    private static Command CompareCommand()
    {
        Argument<string> old = new("old");
        Argument<string> @new = new("new");
        Option<bool> agree = new("--agree") { Description = "What has become better is a failure as well, and so is an amount." };
        Command command = new("compare", "Two results beside each other; a failure: something has become worse.") { old, @new, agree };
        command.SetAction((arguments, _) => GuardAsync(() =>
        {
            ResultComparison comparison = new(BenchResults.Read(arguments.GetValue(old)!), BenchResults.Read(arguments.GetValue(@new)!));
            return Task.FromResult(comparison.Write(Console.Out, arguments.GetValue(agree)) ? Ok : Failed);
        }));
        return command;
    }

    private static Command ReportCommand()
    {
        Argument<string> directory = new("directory");
        Argument<string[]> results = new("results") { Arity = ArgumentArity.OneOrMore };
        Command command = new("report", "Pages and charts from results, of one runtime or of several.") { directory, results };
        command.SetAction((arguments, _) => GuardAsync(() =>
        {
            BenchResults[] read = [.. arguments.GetValue(results)!.Select(BenchResults.Read)];
            new ResultReport(read[0], read[1..]).WriteTo(arguments.GetValue(directory)!);
            return Task.FromResult(Ok);
        }));
        return command;
    }

    private static Command CryptoCommand()
    {
        Command command = new(Crypto, "Bare encryption and decryption, per byte.") { Hidden = true };
        command.SetAction(_ => Console.Out.WriteLine(BareCrypto.MeasurePerByte().ToString(CultureInfo.InvariantCulture)));
        return command;
    }

    private static Command ServeCommand()
    {
        Argument<string> mode = new("mode");
        Argument<string> directory = new("directory");
        Argument<int> port = new("port");
        Argument<string?> upstream = new("upstream") { Arity = ArgumentArity.ZeroOrOne };
        Command command = new(Serve, "Kestrel, for rows that measure a server alone.") { mode, directory, port, upstream };
        command.Hidden = true;
        command.SetAction((arguments, cancellationToken) => GuardAsync(async () =>
        {
            await KestrelServer.RunAsync(
                arguments.GetValue(mode)!,
                arguments.GetValue(directory)!,
                arguments.GetValue(port),
                arguments.GetValue(upstream) is { } address ? new Uri(address) : null,
                cancellationToken);
            return Ok;
        }));
        return command;
    }

    /// <summary>Runs an action and converts a failure to an error message and an exit code.</summary>
    /// <param name="run">The action, which returns an exit code.</param>
    /// <param name="errors">The writer for the error message; standard error by default.</param>
    public static async Task<int> GuardAsync(Func<Task<int>> run, TextWriter? errors = null)
    {
        try
        {
            return await run();
        }
        catch (Exception e) when (
            e is BenchFailedException or AuthenticationException or IOException or SocketException or HttpRequestException
            or KtlsNotAvailableException or Win32Exception
            // HttpClient's timeout. The command line reports no cancellation.
            or TaskCanceledException { InnerException: TimeoutException })
        {
            await (errors ?? Console.Error).WriteLineAsync($"bench failed: {e.Message}{(e.InnerException is { } inner ? $" ({inner.Message})" : "")}");
            return Failed;
        }
    }
}

using System.CommandLine;
using System.Globalization;
using System.Net.Sockets;
using System.Security.Authentication;
using System.Text.Json;
using KernelTls.Bench.Modes;
using KernelTls.Bench.Report;
using KernelTls.Bench.Scenarios;

namespace KernelTls.Bench;

/// <summary>The command line, and the one place that turns outcomes into exit codes.</summary>
internal static class BenchCommand
{
    public const string Measure = "measure";
    public const string Crypto = "crypto";

    private const int Ok = 0;
    private const int Failed = 1;

    public static RootCommand Create()
    {
        Option<string[]> scenarios = ListOption("--scenario", "A row of the table; default: all.", [.. Row.All.Select(row => row.Name)]);
        scenarios.AcceptOnlyFromAmong([.. Row.All.Select(row => row.Name)]);
        Option<string[]> modes = ListOption("--mode", "A mode; default: those of each row.", []);
        modes.AcceptOnlyFromAmong([.. ModeTable.Names]);
        Option<string?> json = new("--json") { Description = "Writes the results to this file.", HelpName = "PATH" };
        Option<bool> goals = new("--goals") { Description = "A missed goal is a failure." };
        RootCommand command = new(
            "Measures what operations cost, by scenario and mode, each in a process of its own. Figures are instruction counts only "
            + "on a machine of eng/lab --instruction-count.")
        {
            scenarios,
            modes,
            json,
            goals,
            MeasureCommand(),
            CryptoCommand(),
            ProfileCommand(),
            ListCommand(),
        };
        command.SetAction((arguments, cancellationToken) => GuardAsync(async () =>
        {
            Comparison comparison = new(arguments.GetValue(scenarios)!, arguments.GetValue(modes)!, Console.Out);
            BenchResults results = await comparison.RunAsync(cancellationToken);
            bool goalsHold = new ResultTable(results).Write(Console.Out);
            if (arguments.GetValue(json) is { } path)
            {
                await File.WriteAllTextAsync(path, JsonSerializer.Serialize(results, BenchJson.Default.BenchResults), cancellationToken);
            }

            return goalsHold || !arguments.GetValue(goals) ? Ok : Failed;
        }));
        return command;
    }

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

    /// <summary>One scenario in one mode, in this process; the result is a line of JSON.</summary>
    private static Command MeasureCommand() => InProcess(
        Measure,
        "One scenario in one mode, in this process.",
        async (row, mode, certificates) =>
        {
            using Scenario? scenario = row.Create?.Invoke(mode, certificates);
            Measurement measured = scenario is null
                ? await IdleMemory.MeasureAsync(row.Name, mode)
                : await Meter.MeasureAsync(row.Name, mode.Name, scenario);
            Console.Out.WriteLine(JsonSerializer.Serialize(measured, BenchJson.Default.Measurement));
        });

    private static Command ProfileCommand() => InProcess(
        "profile",
        "Where the instructions of one scenario in one mode go.",
        async (row, mode, certificates) =>
        {
            using Scenario scenario = row.Create?.Invoke(mode, certificates)
                ?? throw new BenchFailedException($"{row.Name} counts memory, not instructions");
            await Meter.ProfileAsync(scenario);
        });

    private static Command InProcess(string name, string description, Func<Row, Mode, BenchCertificates, Task> run)
    {
        Argument<string> scenario = new("scenario");
        Argument<string> mode = new("mode");
        Command command = new(name, description) { scenario, mode };
        command.Hidden = true;
        command.SetAction((arguments, _) => GuardAsync(async () =>
        {
            Row row = Row.Find(arguments.GetValue(scenario)!);
            BenchCertificates certificates = new();
            await run(row, ModeTable.Create(arguments.GetValue(mode)!, certificates, row.Resumes), certificates);
            return Ok;
        }));
        return command;
    }

    /// <summary>For eng/bench, which checks names before it boots a machine.</summary>
    private static Command ListCommand()
    {
        Command command = new("list", "The names of rows and modes.") { Hidden = true };
        command.SetAction(_ =>
        {
            Console.Out.WriteLine($"scenario: {string.Join(' ', Row.All.Select(row => row.Name))}");
            Console.Out.WriteLine($"mode: {string.Join(' ', ModeTable.Names)}");
        });
        return command;
    }

    private static Command CryptoCommand()
    {
        Command command = new(Crypto, "Bare encryption and decryption, per byte.") { Hidden = true };
        command.SetAction(_ => Console.Out.WriteLine(BareCrypto.MeasurePerByte().ToString(CultureInfo.InvariantCulture)));
        return command;
    }

    private static async Task<int> GuardAsync(Func<Task<int>> run)
    {
        try
        {
            return await run();
        }
        catch (Exception e) when (
            e is BenchFailedException or AuthenticationException or IOException or SocketException or HttpRequestException
            or KtlsNotAvailableException)
        {
            await Console.Error.WriteLineAsync($"bench failed: {e.Message}{(e.InnerException is { } inner ? $" ({inner.Message})" : "")}");
            return Failed;
        }
    }
}

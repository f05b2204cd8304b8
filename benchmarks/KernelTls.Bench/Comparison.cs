using System.Diagnostics;
using System.Globalization;
using System.Runtime.InteropServices;
using System.Text.Json;
using KernelTls.Bench.Modes;
using KernelTls.Bench.Report;
using KernelTls.Bench.Scenarios;

namespace KernelTls.Bench;

/// <summary>
/// Rows × modes, each in a process of its own: nothing that one mode leaves behind, garbage, compiled code, sessions or
/// sockets, is another's cost.
/// </summary>
internal sealed class Comparison
{
    private readonly string[] _scenarios;
    private readonly string[] _modes;
    private readonly TextWriter _output;

    public Comparison(string[] scenarios, string[] modes, TextWriter output)
    {
        _scenarios = [.. Row.All.Select(row => row.Name).Where(scenarios.Contains)];
        _modes = [.. ModeTable.Names.Where(modes.Contains)];
        _output = output;
    }

    public async Task<BenchResults> RunAsync(CancellationToken cancellationToken)
    {
        double? crypto = null;
        if (_modes.Contains(ModeTable.Floor))
        {
            string answer = await RunProcessAsync([BenchCommand.Crypto], cancellationToken);
            crypto = Math.Round(double.Parse(answer, CultureInfo.InvariantCulture), 2);
        }

        List<Measurement> rows = [];
        foreach (string scenario in _scenarios)
        {
            foreach (string mode in _modes)
            {
                long started = Stopwatch.GetTimestamp();
                string answer = await RunProcessAsync([BenchCommand.Measure, scenario, mode], cancellationToken);
                Measurement measured = JsonSerializer.Deserialize(answer, BenchJson.Default.Measurement)!;
                rows.Add(measured);
                _output.WriteLine($"measured {scenario} {mode}: {ResultTable.Describe(measured)}, {Stopwatch.GetElapsedTime(started).TotalSeconds:F0} s");
            }
        }

        return new BenchResults(
            Environment.GetEnvironmentVariable("KTLS_CELL") ?? "host",
            KtlsPlatform.KernelRelease,
            KtlsPlatform.OpenSslVersionText,
            RuntimeInformation.FrameworkDescription,
            crypto,
            [.. rows.Select(row => row with { Ratio = RatioOf(row, rows) })]);
    }

    private static double? RatioOf(Measurement row, List<Measurement> rows) =>
        rows.Find(other => other.Scenario == row.Scenario && other.Mode == ModeTable.Stock) is { } stock
            ? Math.Round(row.PerOp / stock.PerOp, 3)
            : null;

    private static async Task<string> RunProcessAsync(string[] arguments, CancellationToken cancellationToken)
    {
        ProcessStartInfo start = new(Environment.ProcessPath!, [typeof(Comparison).Assembly.Location, .. arguments])
        {
            // What the runtime's profile of the first calls makes of the hot methods differs from process to process, and a
            // round trip with it by a tenth; without it, by less than a hundredth.
            Environment = { ["DOTNET_TieredPGO"] = "0" },
            RedirectStandardOutput = true,
        };
        using Process process = Process.Start(start)!;
        try
        {
            string output = await process.StandardOutput.ReadToEndAsync(cancellationToken);
            await process.WaitForExitAsync(cancellationToken);
            return process.ExitCode == 0
                ? output
                : throw new BenchFailedException($"'{string.Join(' ', arguments)}' ended with exit code {process.ExitCode}");
        }
        catch (OperationCanceledException)
        {
            process.Kill();
            throw;
        }
    }
}

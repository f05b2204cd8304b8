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
        BenchProcess.PrepareMachine();
        double? crypto = null;
        if (_modes.Length == 0 || _modes.Contains(ModeTable.Floor))
        {
            string answer = await BenchProcess.RunAsync([BenchCommand.Crypto], cancellationToken);
            crypto = Math.Round(double.Parse(answer, CultureInfo.InvariantCulture), 2);
        }

        List<Measurement> rows = [];
        foreach (string scenario in _scenarios)
        {
            Row row = Row.Find(scenario);
            foreach (string mode in _modes.Length > 0 ? _modes : row.Modes)
            {
                long started = Stopwatch.GetTimestamp();
                Measurement measured = await MeasureAsync(row, mode, cancellationToken);
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

    private static async Task<Measurement> MeasureAsync(Row row, string mode, CancellationToken cancellationToken)
    {
        List<Measurement> processes = [];
        for (int i = 0; i < row.Processes; i++)
        {
            string answer = await BenchProcess.RunAsync([BenchCommand.Measure, row.Name, mode], cancellationToken);
            processes.Add(JsonSerializer.Deserialize(answer, BenchJson.Default.Measurement)!);
        }

        processes.Sort((one, other) => one.PerOp.CompareTo(other.PerOp));
        Measurement middle = processes[processes.Count / 2];
        return processes.Count == 1
            ? middle
            : middle with { Spread = Math.Round((processes[^1].PerOp - processes[0].PerOp) / middle.PerOp, 4) };
    }

    private static double? RatioOf(Measurement row, List<Measurement> rows) =>
        rows.Find(other => other.Scenario == row.Scenario && other.Mode == ModeTable.Stock) is { } stock
            ? Math.Round(row.PerOp / stock.PerOp, 3)
            : null;
}

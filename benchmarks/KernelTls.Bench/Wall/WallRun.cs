using System.Runtime.InteropServices;
using System.Text.Json;
using KernelTls.Bench.Report;
using KernelTls.Bench.Scenarios;

namespace KernelTls.Bench.Wall;

/// <summary>
/// Measures rows × modes by the wall clock, each in a separate process under the conditions of an ordinary application.
/// </summary>
internal sealed class WallRun
{
    private readonly (Row Row, string Mode)[] _cells;
    private readonly TimeSpan _length;
    private readonly TextWriter _output;

    /// <exception cref="BenchFailedException">A row has none of the modes.</exception>
    public WallRun(string[] scenarios, string[] modes, TimeSpan length, TextWriter output)
    {
        _cells = [.. Row.Select(scenarios, modes).Where(cell => cell.Row is { Create: not null, IsLoad: false, IsStart: false, IsLibrary: false })];
        _length = length;
        _output = output;
    }

    public async Task<WallResults> RunAsync(CancellationToken cancellationToken)
    {
        List<WallMeasurement> rows = [];
        foreach ((Row row, string mode) in _cells)
        {
            string answer = await BenchProcess.RunAsync(
                [WallCommands.Measure, row.Name, mode, $"{_length.TotalSeconds:F0}"], WallClock.LongestOf(_length), cancellationToken);
            rows.Add(JsonSerializer.Deserialize(answer, BenchJson.Default.WallMeasurement)!);
            _output.WriteLine(TextTable.Text($"{rows.Count} of {_cells.Length}: {row.Name} {mode}: {rows[^1].PerSecond:N0} a second"));
        }

        return new WallResults(
            NativeMachine.Describe(),
            KtlsPlatform.KernelRelease,
            KtlsPlatform.Probe().OpenSslVersionText,
            RuntimeInformation.FrameworkDescription,
            rows);
    }

    public static void Write(WallResults results, TextWriter output)
    {
        TextTable table = new(
            ["scenario", "mode", "operations", "a second", "p50 us", "p99 us", "CPU s", "CPU us each", "system calls each"], 2, 3, 4, 5, 6, 7, 8);
        foreach (WallMeasurement row in results.Rows)
        {
            table.Add(
                row.Scenario,
                row.Mode,
                TextTable.Text($"{row.Operations:N0}"),
                TextTable.Text($"{row.PerSecond:N0}"),
                TextTable.Text($"{row.Median:N1}"),
                TextTable.Text($"{row.Percentile99:N1}"),
                TextTable.Text($"{row.CpuSeconds:N2}"),
                TextTable.Text($"{row.CpuPerOp:N1}"),
                row.SystemCallsPerOp is { } calls ? TextTable.Text($"{calls:N1}") : "-");
        }

        output.WriteLine();
        output.WriteLine($"{results.Machine}: Linux {results.Kernel}, {results.OpenSsl}, {results.Runtime}");
        table.Write(output);
        output.WriteLine();
        output.WriteLine("One operation after the other, over loopback. CPU and system calls are of the process with both ends, of server rows");
        output.WriteLine("of the server's; system calls are counted by perf in a round of its own.");
        foreach (string reason in results.Rows.Select(row => row.NotCounted).OfType<string>().Distinct())
        {
            output.WriteLine($"System calls were not counted: {reason}");
        }
    }
}

using System.Globalization;
using System.Runtime.InteropServices;
using System.Text.Json;
using KernelTls.Bench.Modes;
using KernelTls.Bench.Report;
using KernelTls.Bench.Scenarios;
using KernelTls.Bench.Servers;

namespace KernelTls.Bench;

/// <summary>
/// Measures rows × modes, each in a separate process. Therefore garbage, compiled code, sessions and sockets of one
/// mode do not add to the cost of another. If one measurement fails, the others continue.
/// </summary>
internal sealed class Comparison
{
    /// <summary>Odd, so that there is one in the middle. Of rows that can run only once in a process.</summary>
    private const int StartProcesses = 3;

    private readonly (Row Row, string Mode)[] _cells;
    private readonly TextWriter _output;
    private readonly Func<string[], CancellationToken, Task<string>> _run;

    /// <param name="scenarios">The names of the rows.</param>
    /// <param name="modes">The names of the modes, or an empty array for the modes of each row.</param>
    /// <param name="output">
    /// The writer for a line after each measurement, with the number of completed processes and their total.
    /// </param>
    /// <param name="run">The function that runs a process, <see cref="BenchProcess.RunSteadyAsync"/>.</param>
    /// <exception cref="BenchFailedException">A row has none of the modes.</exception>
    public Comparison(
        string[] scenarios, string[] modes, TextWriter output, Func<string[], CancellationToken, Task<string>> run)
    {
        _cells = Row.Select(scenarios, modes);
        _output = output;
        _run = run;
    }

    /// <param name="keep">
    /// The function that stores the results so far. It is called after each result, so that an interrupted run loses
    /// none.
    /// </param>
    /// <param name="cancellationToken">A token that ends the run.</param>
    public async Task<BenchResults> RunAsync(Action<BenchResults> keep, CancellationToken cancellationToken)
    {
        BenchProcess.PrepareMachine();
        string? nginx = _cells.Any(cell => NginxServer.IsMode(cell.Mode)) ? await NginxServer.ReadVersionAsync() : null;
        double? crypto = null;
        if (_cells.Any(cell => cell.Mode == ModeTable.Floor))
        {
            string answer = await _run([BenchCommand.Crypto], cancellationToken);
            crypto = Math.Round(double.Parse(answer, CultureInfo.InvariantCulture), 2);
        }

        List<Measurement> rows = [];
        List<string> failures = [];
        int done = 0;
        foreach ((Row row, string mode) in _cells)
        {
            string outcome;
            try
            {
                rows.Add(await MeasureAsync(row, mode, cancellationToken));
                outcome = ResultTable.Describe(rows[^1]);
            }
            catch (BenchFailedException e)
            {
                failures.Add($"{row.Name} {mode}: {e.Message}");
                outcome = $"failed: {e.Message}";
            }

            keep(Results());
            done++;
            _output.WriteLine($"{done} of {_cells.Length}: {row.Name} {mode}: {outcome}");
        }

        return Results();

        BenchResults Results() => new(
            Environment.GetEnvironmentVariable("KTLS_CELL") ?? "host",
            KtlsPlatform.KernelRelease,
            KtlsPlatform.Probe().OpenSslVersionText,
            RuntimeInformation.FrameworkDescription,
            crypto,
            [.. rows.Select(row => WithRatio(row, rows))])
        {
            Failures = [.. failures],
            Nginx = nginx,
        };
    }

    private async Task<Measurement> MeasureAsync(Row row, string mode, CancellationToken cancellationToken)
    {
        List<Measurement> processes = [];
        do
        {
            processes.Add(await MeasureOnceAsync(row, mode, cancellationToken));
        }
        while (row.IsStart && processes.Count < StartProcesses);

        return processes is [var only] ? only : Measurement.OfProcesses(processes);
    }

    private async Task<Measurement> MeasureOnceAsync(Row row, string mode, CancellationToken cancellationToken)
    {
        string answer = await _run([BenchCommand.Measure, row.Name, mode], cancellationToken);
        return JsonSerializer.Deserialize(answer, BenchJson.Default.Measurement)!;
    }

    private static Measurement WithRatio(Measurement measured, List<Measurement> all)
    {
        string mode = Row.Find(measured.Scenario).Reference;
        return all.Find(other => other.Scenario == measured.Scenario && other.Mode == mode) is { } reference
            ? measured with
            {
                Ratio = Math.Round(measured.PerOp / reference.PerOp, 3),
                RatioTo = mode,
                Load = reference.Load is { } load ? measured.Load?.WithRatiosTo(load) : measured.Load,
            }
            : measured;
    }
}

using System.Globalization;
using System.Runtime.InteropServices;
using System.Text.Json;
using KernelTls.Bench.Modes;
using KernelTls.Bench.Report;
using KernelTls.Bench.Scenarios;
using KernelTls.Bench.Servers;

namespace KernelTls.Bench;

/// <summary>
/// Rows × modes, each in a process of its own: nothing that one mode leaves behind, garbage, compiled code, sessions or
/// sockets, is another's cost. One that fails takes nothing from the others.
/// </summary>
internal sealed class Comparison
{
    private readonly (Row Row, string Mode)[] _cells;
    private readonly TextWriter _output;
    private readonly Func<string[], CancellationToken, Task<string>> _run;

    /// <param name="scenarios">The rows.</param>
    /// <param name="modes">The modes; none: those that each row has.</param>
    /// <param name="output">Takes a line as each is measured, with how many processes have run of how many.</param>
    /// <param name="run"><see cref="BenchProcess.RunSteadyAsync"/>.</param>
    /// <exception cref="BenchFailedException">A row has none of the modes.</exception>
    public Comparison(
        string[] scenarios, string[] modes, TextWriter output, Func<string[], CancellationToken, Task<string>> run)
    {
        _cells = Row.Select(scenarios, modes);
        _output = output;
        _run = run;
    }

    /// <param name="keep">Takes the results so far, whenever there is one more: a run that is cut off has lost nothing.</param>
    /// <param name="cancellationToken">Ends the run.</param>
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
            KtlsPlatform.OpenSslVersionText,
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
        string answer = await _run([BenchCommand.Measure, row.Name, mode], cancellationToken);
        return JsonSerializer.Deserialize(answer, BenchJson.Default.Measurement)!;
    }

    private static Measurement WithRatio(Measurement measured, List<Measurement> all)
    {
        string mode = Row.Find(measured.Scenario).Reference;
        return all.Find(other => other.Scenario == measured.Scenario && other.Mode == mode) is { } reference
            ? measured with { Ratio = Math.Round(measured.PerOp / reference.PerOp, 3), RatioTo = mode }
            : measured;
    }
}

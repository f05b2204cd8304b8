using System.Runtime.InteropServices;
using System.Text.Json;
using KernelTls.Bench.Generators;
using KernelTls.Bench.Modes;
using KernelTls.Bench.Report;
using KernelTls.Bench.Scenarios;

namespace KernelTls.Bench.Wall;

/// <summary>
/// Measures rows of load by the wall clock in turns: the stock stream, then each mode, each in a separate process. A mode
/// makes a pair with the stock stream of its turn. Other activity of the machine affects both, and the medians of several
/// pairs ignore activity that affected only one.
/// </summary>
internal sealed class LoadRun
{
    /// <summary>The number of pairs. It is odd, so that one pair is the median.</summary>
    private const int Pairs = 5;

    /// <summary>The number of pairs of a row in a mode that may fail and are measured again.</summary>
    private const int MostFailures = 2;

    /// <summary>The ratio to the stock stream's rate below which a rate is a loss.</summary>
    private const double LeastRate = 0.98;

    /// <summary>The ratio to the stock stream's processor time above which a processor time is a loss.</summary>
    private const double MostProcessor = 1.00;

    private static readonly string[] s_everywhere = [ModeTable.Floor, ModeTable.Direct, ModeTable.DirectClient, ModeTable.DirectServer];

    private readonly (string Row, string Mode)[] _cells;
    private readonly TimeSpan _length;
    private readonly TextWriter _output;
    private readonly Func<string, string, CancellationToken, Task<WallMeasurement>> _measure;

    /// <param name="scenarios">The names of the rows. Rows that are not load are ignored.</param>
    /// <param name="modes">
    /// The names of the modes, or an empty array for all modes of this machine. Modes that this machine does not have
    /// are ignored.
    /// </param>
    /// <param name="length">The duration of each measurement, excluding the warm-up.</param>
    /// <param name="output">The writer for a line after each row in a mode, and after each failure.</param>
    /// <param name="measure">
    /// A function that measures a row in a mode, or <see langword="null"/> for a process of this program, in rows of load
    /// generators for the server's process.
    /// </param>
    /// <exception cref="BenchFailedException">There is nothing to measure.</exception>
    public LoadRun(
        string[] scenarios,
        string[] modes,
        TimeSpan length,
        TextWriter output,
        Func<string, string, CancellationToken, Task<WallMeasurement>>? measure = null)
    {
        string[] possible =
        [
            .. s_everywhere, .. DirectTlsMode.IsSupported ? [ModeTable.DirectTls] : Array.Empty<string>(), .. KtlsPlatform.Probe().IsSupported ? ModeTable.KernelEnds : [],
        ];
        string[] chosen = [.. possible.Where(mode => modes.Length == 0 || modes.Contains(mode))];
        _cells =
        [
            .. from row in Rows
               where scenarios.Contains(row)
               from mode in GeneratorRow.Find(row) is null ? chosen : chosen.Intersect(GeneratorRow.Modes)
               select (row, mode),
        ];
        if (_cells.Length == 0)
        {
            throw new BenchFailedException($"none of this is load in one of the modes {string.Join(", ", possible)}");
        }

        _length = length;
        _output = output;
        _measure = measure ?? MeasureAsync;
    }

    /// <summary>Gets the names of the rows: those of load with both ends in one process, and those of load generators.</summary>
    public static IReadOnlyList<string> Rows { get; } =
    [
        .. Row.All.Where(row => row is { IsLoad: true, IsStorm: false, Create: not null }).Select(row => row.Name),
        .. GeneratorRow.All.Select(row => row.Name),
    ];

    /// <summary>
    /// Measures. A pair that fails is measured again and counted, because Kestrel sometimes never sends a response over
    /// HTTP/2, without TLS as well (docs/results/misses.md).
    /// </summary>
    /// <exception cref="BenchFailedException">A row in a mode failed too often.</exception>
    public async Task<LoadResults> RunAsync(CancellationToken cancellationToken)
    {
        List<LoadMeasurement> rows = [];
        foreach (IGrouping<string, string> cells in _cells.GroupBy(cell => cell.Row, cell => cell.Mode))
        {
            Column[] columns = [.. cells.Select(mode => new Column(mode))];
            for (int turn = 0; turn < Pairs; turn++)
            {
                await TakeTurnAsync(cells.Key, columns, cancellationToken);
            }

            foreach (Column column in columns)
            {
                rows.Add(LoadMeasurement.Of(column.Pairs) with { Failures = column.Failures });
                _output.WriteLine(TextTable.Text(
                    $"{rows.Count} of {_cells.Length}: {rows[^1].Scenario} {column.Mode}: {rows[^1].PerSecond:N0} a second, {rows[^1].RateRatio:F2} of the stock stream's"));
            }
        }

        return new LoadResults(
            NativeMachine.Describe(),
            KtlsPlatform.KernelRelease,
            KtlsPlatform.Probe().OpenSslVersionText,
            RuntimeInformation.FrameworkDescription,
            Pairs,
            rows);
    }

    public static void Write(LoadResults results, TextWriter output)
    {
        TextTable table = new(
            ["scenario", "mode", "a second", "stock", "ratio", "mean us", "p50 us", "p99 us", "p99 ratio", "CPU us each", "CPU ratio", "contended", "stock", "failed", "", "ratios of the pairs"],
            2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13);
        foreach (LoadMeasurement row in results.Rows)
        {
            table.Add(
                row.Scenario,
                row.Mode,
                TextTable.Text($"{row.PerSecond:N0}"),
                TextTable.Text($"{row.StockPerSecond:N0}"),
                TextTable.Ratio(row.RateRatio),
                TextTable.Text($"{row.Mean:N1}"),
                TextTable.Text($"{row.Median:N1}"),
                TextTable.Text($"{row.Percentile99:N1}"),
                TextTable.Ratio(row.Percentile99Ratio),
                TextTable.Text($"{row.CpuPerOp:N1}"),
                TextTable.Ratio(row.CpuRatio),
                Contentions(row.Contentions),
                Contentions(row.StockContentions),
                TextTable.Text($"{row.Failures}"),
                row.RateRatio < LeastRate || row.CpuRatio > MostProcessor ? "LOSES" : "",
                string.Join(' ', row.RateRatios.Select(ratio => TextTable.Text($"{ratio:F2}"))));
        }

        output.WriteLine();
        output.WriteLine($"{results.Machine}: Linux {results.Kernel}, {results.OpenSsl}, {results.Runtime}");
        table.Write(output);
        output.WriteLine();
        output.WriteLine($"Medians of {results.Pairs} turns: the stock stream, then each mode, over loopback. In rows c100-* both ends are in one process, in");
        output.WriteLine("the others the client is wrk, hey or h2load, and CPU is the server's. A rate below");
        output.WriteLine(TextTable.Text($"{LeastRate:F2} of the stock stream's or a processor time above {MostProcessor:F2} of its loses. Contended: how often a thread waited"));
        output.WriteLine("for a managed lock, in a thousand operations.");

        static string Contentions(double? count) => count is { } known ? TextTable.Text($"{known:N2}") : "-";
    }

    private async Task TakeTurnAsync(string row, Column[] columns, CancellationToken cancellationToken)
    {
        WallMeasurement? stock = null;
        foreach (Column column in columns)
        {
            for (bool isMeasured = false; !isMeasured;)
            {
                try
                {
                    stock ??= await _measure(row, ModeTable.Stock, cancellationToken);
                    column.Pairs.Add(new LoadPair(stock, await _measure(row, column.Mode, cancellationToken)));
                    isMeasured = true;
                }
                catch (BenchFailedException failure) when (column.Failures < MostFailures)
                {
                    stock = null;
                    column.Failures++;
                    _output.WriteLine($"a pair of {row} {column.Mode} is measured again: {failure.Message}");
                }
            }
        }
    }

    private async Task<WallMeasurement> MeasureAsync(string row, string mode, CancellationToken cancellationToken)
    {
        if (GeneratorRow.Find(row) is { } generated)
        {
            return await GeneratorMeasurement.MeasureAsync(generated, mode, _length, cancellationToken);
        }

        string answer = await BenchProcess.RunAsync(
            [WallCommands.Measure, row, mode, $"{_length.TotalSeconds:F0}"], WallClock.LongestOf(_length), cancellationToken);
        return JsonSerializer.Deserialize(answer, BenchJson.Default.WallMeasurement)!;
    }

    /// <summary>Collects what was measured of one row in one mode.</summary>
    private sealed class Column(string mode)
    {
        public string Mode => mode;

        public List<LoadPair> Pairs { get; } = [];

        public int Failures { get; set; }
    }
}

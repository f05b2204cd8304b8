using System.Runtime.InteropServices;
using KernelTls.Bench.Generators;
using KernelTls.Bench.Modes;
using KernelTls.Bench.Report;
using KernelTls.Bench.Scenarios;

namespace KernelTls.Bench.Wall;

/// <summary>
/// Measures rows of load by the wall clock in turns: the stock stream, then each mode, each in a separate process, and every other turn the
/// other way round. A mode makes a pair with the stock stream of its turn. Other activity of the machine affects both, and the medians of
/// several pairs ignore activity that affected only one. There are turns until it is clear whether a mode loses, or how much it gains.
/// </summary>
internal sealed class LoadRun
{
    /// <summary>The number of turns after which a row is left as it is by default.</summary>
    public const int DefaultMostTurns = 30;

    /// <summary>The number of turns after which processes are replaced, because two processes of the same code differ.</summary>
    private const int TurnsPerProcess = 3;

    /// <summary>The number of turns of a row that may fail and are measured again.</summary>
    private const int MostFailures = 2;

    /// <summary>The ratio to the stock stream's rate below which a rate is a loss.</summary>
    private const double LeastRate = 0.98;

    /// <summary>The ratio to the stock stream's processor time above which a processor time is a loss.</summary>
    private const double MostProcessor = 1.00;

    private static readonly string[] s_everywhere = [ModeTable.Floor, ModeTable.Direct, ModeTable.DirectClient, ModeTable.DirectServer];

    private readonly (string Row, string Mode)[] _cells;
    private readonly TimeSpan _length;
    private readonly TextWriter _output;
    private readonly int _mostTurns;
    private readonly Func<string, string, CancellationToken, Task<ILoadSubject>> _start;

    /// <param name="scenarios">The names of the rows. Rows that are not load are ignored.</param>
    /// <param name="modes">
    /// The names of the modes, or an empty array for all modes of this machine. Modes that this machine does not have
    /// are ignored.
    /// </param>
    /// <param name="length">The duration of each measurement, excluding the warm-up.</param>
    /// <param name="output">The writer for a line after each row in a mode, and after each failure.</param>
    /// <param name="mostTurns">The number of turns after which a row is left as it is.</param>
    /// <param name="start">
    /// A function that starts and warms up a row in a mode, or <see langword="null"/> for a process of this program, in rows of load
    /// generators for the server's process.
    /// </param>
    /// <exception cref="BenchFailedException">There is nothing to measure.</exception>
    public LoadRun(
        string[] scenarios,
        string[] modes,
        TimeSpan length,
        TextWriter output,
        int mostTurns = DefaultMostTurns,
        Func<string, string, CancellationToken, Task<ILoadSubject>>? start = null)
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
               from mode in GeneratorRow.Find(row) is not null ? chosen.Intersect(GeneratorRow.Modes)
                   : ClientRow.Find(row) is not null ? chosen.Intersect(ClientRow.Modes)
                   : chosen
               select (row, mode),
        ];
        if (_cells.Length == 0)
        {
            throw new BenchFailedException($"none of this is load in one of the modes {string.Join(", ", possible)}");
        }

        _length = length;
        _output = output;
        _mostTurns = mostTurns;
        _start = start ?? StartAsync;
    }

    /// <summary>Gets the names of the rows: those of load with both ends in one process, those of load generators, and those of HttpClient alone.</summary>
    public static IReadOnlyList<string> Rows { get; } =
    [
        .. Row.All.Where(row => row is { IsLoad: true, IsStorm: false, Create: not null }).Select(row => row.Name),
        .. GeneratorRow.All.Select(row => row.Name),
        .. ClientRow.All.Select(row => row.Name),
    ];

    /// <summary>
    /// Measures. A turn that fails is measured again and counted, because Kestrel sometimes never sends a response over
    /// HTTP/2, without TLS as well (docs/results/misses.md).
    /// </summary>
    /// <exception cref="BenchFailedException">A row failed too often.</exception>
    public async Task<LoadResults> RunAsync(CancellationToken cancellationToken)
    {
        List<LoadMeasurement> rows = [];
        foreach (IGrouping<string, string> cells in _cells.GroupBy(cell => cell.Row, cell => cell.Mode))
        {
            foreach (LoadMeasurement row in await MeasureAsync(cells.Key, [.. cells], cancellationToken))
            {
                rows.Add(row);
                _output.WriteLine(TextTable.Text(
                    $"{rows.Count} of {_cells.Length}: {row.Scenario} {row.Mode}: rate {row.RateRatio:F3} ({row.RateRange}), processor time {row.CpuRatio:F3} ({row.CpuRange}) of the stock stream's"));
            }
        }

        return new LoadResults(
            NativeMachine.Describe(),
            KtlsPlatform.KernelRelease,
            KtlsPlatform.Probe().OpenSslVersionText,
            RuntimeInformation.FrameworkDescription,
            rows);
    }

    public static void Write(LoadResults results, TextWriter output)
    {
        TextTable table = new(
            ["scenario", "mode", "a second", "stock", "ratio", "", "mean us", "p50 us", "p99 us", "p99 ratio", "CPU us each", "CPU ratio", "", "contended", "stock", "pairs", "failed", ""],
            2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16);
        foreach (LoadMeasurement row in results.Rows)
        {
            table.Add(
                row.Scenario,
                row.Mode,
                TextTable.Text($"{row.PerSecond:N0}"),
                TextTable.Text($"{row.StockPerSecond:N0}"),
                TextTable.Ratio(row.RateRatio),
                $"{row.RateRange}",
                TextTable.Text($"{row.Mean:N1}"),
                TextTable.Text($"{row.Median:N1}"),
                TextTable.Text($"{row.Percentile99:N1}"),
                TextTable.Ratio(row.Percentile99Ratio),
                TextTable.Text($"{row.CpuPerOp:N1}"),
                TextTable.Ratio(row.CpuRatio),
                $"{row.CpuRange}",
                Contentions(row.Contentions),
                Contentions(row.StockContentions),
                TextTable.Text($"{row.RateRatios.Count}"),
                TextTable.Text($"{row.Failures}"),
                Judge(row));
        }

        output.WriteLine();
        output.WriteLine($"{results.Machine}: Linux {results.Kernel}, {results.OpenSsl}, {results.Runtime}");
        table.Write(output);
        output.WriteLine();
        output.WriteLine("Medians of the pairs, and the range in which each median lies with 95 % probability: the stock stream and each mode in turns, over");
        output.WriteLine("loopback. In rows c100-* both ends are in one process, and in rows nginx-* only the client is measured. In the others");
        output.WriteLine("the client is wrk, hey or h2load, and CPU is the server's. LOSES: the whole range of the rate lies");
        output.WriteLine(TextTable.Text($"below {LeastRate:F2} of the stock stream's, or that of the processor time above {MostProcessor:F2} of its; open: a range contains the limit."));
        output.WriteLine("Contended: how often a thread waited for a managed lock, in a thousand operations.");

        static string Contentions(double? count) => count is { } known ? TextTable.Text($"{known:N2}") : "-";
    }

    private static string Judge(LoadMeasurement row)
    {
        if (row is not { RateRange: { } rate, CpuRange: { } processor })
        {
            return "open";
        }

        return rate.High < LeastRate || processor.Low > MostProcessor ? "LOSES"
            : rate.Low < LeastRate || processor.High > MostProcessor ? "open"
            : "";
    }

    private static bool IsKnown(LoadMeasurement row) =>
        row is { RateRange: { } rate, CpuRange: { } processor }
        && ((rate.IsNarrow && processor.IsNarrow) || Judge(row) != "open");

    private async Task<IEnumerable<LoadMeasurement>> MeasureAsync(string row, string[] modes, CancellationToken cancellationToken)
    {
        List<LoadPair>[] pairs = [.. modes.Select(_ => new List<LoadPair>())];
        int failures = 0;
        bool isKnown = false;
        while (!isKnown && pairs[0].Count < _mostTurns)
        {
            List<ILoadSubject> subjects = [];
            try
            {
                foreach (string mode in modes.Prepend(ModeTable.Stock))
                {
                    subjects.Add(await _start(row, mode, cancellationToken));
                }

                for (int turn = 0; turn < TurnsPerProcess && !isKnown && pairs[0].Count < _mostTurns; turn++)
                {
                    WallMeasurement[] measured = await TakeTurnAsync(subjects, isReversed: pairs[0].Count % 2 == 1, cancellationToken);
                    for (int i = 0; i < modes.Length; i++)
                    {
                        pairs[i].Add(new LoadPair(measured[0], measured[i + 1]));
                    }

                    isKnown = pairs.All(column => IsKnown(LoadMeasurement.Of(column)));
                }
            }
            catch (BenchFailedException failure) when (failures < MostFailures)
            {
                failures++;
                await _output.WriteLineAsync($"a turn of {row} is measured again: {failure.Message}");
            }
            finally
            {
                foreach (ILoadSubject subject in subjects)
                {
                    await subject.DisposeAsync();
                }
            }
        }

        return pairs.Select(column => LoadMeasurement.Of(column) with { Failures = failures });
    }

    /// <summary>Measures each subject once and returns the results in the order of the subjects.</summary>
    private static async Task<WallMeasurement[]> TakeTurnAsync(List<ILoadSubject> subjects, bool isReversed, CancellationToken cancellationToken)
    {
        WallMeasurement[] measured = new WallMeasurement[subjects.Count];
        for (int i = 0; i < measured.Length; i++)
        {
            int subject = isReversed ? measured.Length - 1 - i : i;
            measured[subject] = await subjects[subject].MeasureAsync(cancellationToken);
        }

        return measured;
    }

    private async Task<ILoadSubject> StartAsync(string row, string mode, CancellationToken cancellationToken) =>
        GeneratorRow.Find(row) is { } generated
            ? await GeneratorSubject.StartAsync(generated, mode, _length, cancellationToken)
            : await ChildSubject.StartAsync(row, mode, _length, cancellationToken);
}

using System.Diagnostics;
using KernelTls.Bench.Modes;
using KernelTls.Bench.Report;
using KernelTls.Bench.Scenarios;
using KernelTls.Bench.Wall;

namespace KernelTls.Bench.Tests;

public class LoadTests
{
    private const int Operations = 250;

    public static TheoryData<string, string> Cells
    {
        get
        {
            TheoryData<string, string> cells = [];
            foreach (Row row in Row.All.Where(row => row is { IsLoad: true, IsStorm: false, Create: not null }))
            {
                cells.Add(row.Name, ModeTable.Stock);
                cells.Add(row.Name, ModeTable.Direct);
            }

            cells.Add("c100-h2-get-0", ModeTable.Floor);
            cells.Add("c100-grpc-unary", ModeTable.Floor);
            cells.Add("c100-h2-get-0", ModeTable.DirectClient);
            cells.Add("c100-h2-get-0", ModeTable.DirectServer);
            return cells;
        }
    }

    [Theory]
    [MemberData(nameof(Cells))]
    public async Task A_row_has_a_hundred_operations_under_way_and_ends_all_of_them(string name, string mode)
    {
        await using Scenario scenario = Row.Find(name).Create!(mode);
        Assert.Equal(100, scenario.Concurrency);
        await scenario.PrepareAsync();
        scenario.Times = [];

        long begun = Stopwatch.GetTimestamp();
        await scenario.RunAsync(Operations);
        TimeSpan elapsed = Stopwatch.GetElapsedTime(begun);

        scenario.Verify();
        Assert.Equal(Operations, scenario.Times.Count);
        Assert.DoesNotContain(scenario.Times, time => time <= TimeSpan.Zero);

        // Sequential operations would together take no longer than the whole run.
        Assert.True(scenario.Times.Sum(time => time.TotalSeconds) > 2 * elapsed.TotalSeconds, "operations were hardly under way at the same time");
    }

    [Theory]
    [InlineData(ModeTable.Stock)]
    [InlineData(ModeTable.Direct)]
    public async Task A_storm_opens_all_connections_at_once_beside_one_that_is_open(string mode)
    {
        await using HandshakeStorm storm = (HandshakeStorm)Row.Find("c200-storm").Create!(mode);
        await storm.PrepareAsync();
        int connections = storm.Connections;
        storm.Times = [];

        await storm.RunAsync(storm.OperationsPerRound);

        storm.Verify();
        Assert.Equal(200, storm.Concurrency);
        Assert.Equal(200, storm.Connections - connections);
        Assert.InRange(storm.Times.Count, 1, int.MaxValue);
    }

    [Fact]
    public async Task Figures_beside_the_instructions_are_those_of_the_row()
    {
        await using Scenario scenario = Row.Find("c100-h1-get-64k").Create!(ModeTable.Stock);
        await scenario.PrepareAsync();

        LoadFigures figures = await LoadMeter.MeasureAsync(scenario, hasTls: true, () => TimeSpan.Zero);

        Assert.InRange(figures.Median, 1, figures.Percentile99);
        Assert.Null(figures.Resumed);

        // If this process may capture packets: a request and a body of 64 KiB are at least five records.
        using WireTap? tap = WireTap.TryOpen(1, hasRecords: true);
        Assert.Equal(tap is not null, figures.Segments is not null);
        Assert.True(figures.Segments is null or >= 2, $"{figures}");
        Assert.True(figures.Records is null or >= 5, $"{figures}");
    }

    [Fact]
    public async Task Rounds_that_wait_for_the_compiler_do_not_count()
    {
        await using CompilingScenario scenario = new(compilingRounds: 3);

        List<TimeSpan> times = await LoadMeter.TimeAsync(scenario, () => scenario.CompilationTime, TimeSpan.Zero);

        Assert.Equal(Enumerable.Repeat(CompilingScenario.Compiled, LoadMeter.TimedRounds), times);
        Assert.Equal(3 + LoadMeter.TimedRounds, scenario.Rounds);
    }

    [Fact]
    public async Task Rounds_that_all_wait_for_the_compiler_are_a_failure()
    {
        await using CompilingScenario scenario = new(compilingRounds: int.MaxValue);

        BenchFailedException failure = await Assert.ThrowsAsync<BenchFailedException>(
            () => LoadMeter.TimeAsync(scenario, () => scenario.CompilationTime, TimeSpan.Zero));

        Assert.Contains("in all but 0 of 80 timed rounds", failure.Message, StringComparison.Ordinal);
    }

    [Fact]
    public async Task Connections_that_are_gathered_are_open_at_the_same_time()
    {
        BenchCertificates certificates = new();
        HttpExchangeKind kind = new(System.Net.HttpVersion.Version11) { Concurrency = 3 };
        await using ConcurrentExchange load = new(ModeTable.Create(ModeTable.Stock, certificates, resume: false), certificates, kind, 10);
        await load.PrepareAsync();
        Assert.Equal(3, load.Connections);

        await load.GatherAsync(20);
        await load.RunAsync(50);
        load.Verify();

        Assert.Equal(20, load.Connections);
    }

    [Fact]
    public void The_middle_of_the_pairs_counts()
    {
        (double Stock, double Rate)[] rates = [(100, 90), (200, 100), (100, 99), (50, 60), (100, 95)];
        LoadMeasurement measured = LoadMeasurement.Of([.. rates.Select(rate => new LoadPair(RateOf("sslstream", rate.Stock), RateOf("direct", rate.Rate)))]);

        Assert.Equal([0.9, 0.5, 0.99, 1.2, 0.95], measured.RateRatios);
        Assert.Equal((0.95, 95, 100, "direct"), (measured.RateRatio, measured.PerSecond, measured.StockPerSecond, measured.Mode));
        Assert.Null(measured.RateRange);
    }

    /// <summary>Of n tosses of a coin, k or fewer are heads with a probability that tables of the sign test list.</summary>
    [Theory]
    [InlineData(6, 1, 6)]
    [InlineData(8, 1, 8)]
    [InlineData(9, 2, 8)]
    [InlineData(20, 6, 15)]
    [InlineData(30, 10, 21)]
    public void The_median_lies_between_two_of_the_values(int count, int low, int high)
    {
        MedianInterval range = MedianInterval.Of(Enumerable.Range(1, count).Reverse().Select(i => (double)i));
        Assert.Equal(new MedianInterval(low, high), range);
    }

    [Fact]
    public void Five_values_are_too_few() => Assert.Throws<ArgumentOutOfRangeException>(() => MedianInterval.Of([1, 1, 1, 1, 1]));

    [Fact]
    public async Task A_hundred_connections_at_a_time_each_find_a_session_to_resume()
    {
        await using Scenario scenario = Row.Find("c100-h1-connclose").Create!(ModeTable.Direct);
        await scenario.PrepareAsync();
        await scenario.RunAsync(Operations);
        await scenario.RunAsync(Operations);
        Assert.InRange(scenario.Resumed!.Value, 0.95, 1);
    }

    [Fact]
    public void A_rate_under_load_is_that_of_all_operations_together()
    {
        // Ten at a time, each of 1 ms.
        TimeSpan[] times = [.. Enumerable.Repeat(TimeSpan.FromMilliseconds(1), 50)];
        WallMeasurement measured = WallMeasurement.Of("row", "mode", times, concurrency: 10, TimeSpan.FromSeconds(1), null, null);
        Assert.Equal((10_000, 1000), (measured.PerSecond, measured.Mean));
    }

    [Fact]
    public void Goals_of_load_are_kept_or_missed_by_their_words()
    {
        Goal goal = Goal.All.Single(goal => goal is { Scenario: "c100-h2-get-0", Mode: "ktls-server" });
        Assert.Equal("<= 0.82, p99 <= 1.00, segments <= 1.10", goal.Describe(Measurement.Instructions));
        Assert.Equal("", goal.Judge(Measured(0.82, 1, 1.1), Results.Of()));
        Assert.Equal("ratio, p99, segments", goal.Judge(Measured(0.83, 1.01, 1.11), Results.Of()));

        // A figure that could not be counted does not miss its goal.
        Assert.Equal("", goal.Judge(Measured(0.82, null, null), Results.Of()));
    }

    [Fact]
    public void Every_row_of_load_but_memory_has_goals_for_both_ends_and_for_each()
    {
        foreach (Row row in Row.All.Where(row => row is { IsLoad: true, Create: not null }))
        {
            Assert.Equal(ModeTable.KernelEnds, Goal.All.Where(goal => goal.Scenario == row.Name).Select(goal => goal.Mode));
        }
    }

    [Fact]
    public void A_machine_without_the_mode_or_a_row_without_load_is_refused() =>
        Assert.StartsWith(
            "none of this is load in one of the modes plain, direct",
            Assert.Throws<BenchFailedException>(() => new LoadRun(["h2-get-0"], [], TimeSpan.FromSeconds(1), TextWriter.Null)).Message,
            StringComparison.Ordinal);

    [Fact]
    public async Task A_turn_that_fails_is_measured_again_and_counted()
    {
        await using StringWriter output = new();
        Subjects subjects = new((_, count) => count == 4 ? throw new BenchFailedException("it stalled") : 100);
        LoadRun run = new(["c100-h2-get-0"], ["direct"], TimeSpan.FromSeconds(1), output, start: subjects.StartAsync);

        LoadMeasurement row = Assert.Single((await run.RunAsync(TestContext.Current.CancellationToken)).Rows);

        // Two turns, of which the second failed, and five with new processes.
        Assert.Equal((6, 1, 14), (row.RateRatios.Count, row.Failures, subjects.Measured.Count));
        Assert.StartsWith("a turn of c100-h2-get-0 is measured again: it stalled", output.ToString(), StringComparison.Ordinal);
        Assert.Equal((6, 6), (subjects.Started, subjects.Disposed));
    }

    [Fact]
    public async Task The_modes_of_a_turn_share_its_stock_stream_and_turns_alternate()
    {
        Subjects subjects = new((_, count) => count);
        LoadRun run = new(
            ["c100-h2-get-0"], ["direct", "direct-client"], TimeSpan.FromSeconds(1), TextWriter.Null, mostTurns: 2, subjects.StartAsync);

        IReadOnlyList<LoadMeasurement> rows = (await run.RunAsync(TestContext.Current.CancellationToken)).Rows;

        Assert.Equal(["sslstream", "direct", "direct-client", "direct-client", "direct", "sslstream"], subjects.Measured);
        Assert.Equal([2, 0.833], rows[0].RateRatios);
        Assert.Equal([3, 0.667], rows[1].RateRatios);
    }

    /// <summary>There are turns until each median is known well enough, or until there are enough of them.</summary>
    [Theory]
    [InlineData(0.90, 0.00, 6, "LOSES")]
    [InlineData(1.30, 0.20, 6, "")]
    [InlineData(0.98, 0.004, 6, "open")]
    [InlineData(0.98, 0.05, 12, "open")]
    public async Task A_row_has_as_many_turns_as_it_takes(double ratio, double spread, int turns, string verdict)
    {
        int pair = 0;
        Subjects subjects = new((mode, _) => mode == ModeTable.Stock ? 100 : 100 * (ratio + (pair++ % 2 == 0 ? spread : -spread)));
        LoadRun run = new(["c100-h2-get-0"], ["direct"], TimeSpan.FromSeconds(1), TextWriter.Null, mostTurns: 12, subjects.StartAsync);

        LoadResults results = await run.RunAsync(TestContext.Current.CancellationToken);

        Assert.Equal(turns, Assert.Single(results.Rows).RateRatios.Count);
        await using StringWriter text = new();
        LoadRun.Write(results, text);
        string line = text.ToString().Split('\n').Single(line => line.StartsWith("c100-h2-get-0", StringComparison.Ordinal));
        Assert.Equal(verdict, line.Split("  ", StringSplitOptions.RemoveEmptyEntries)[^1].Trim() is "LOSES" or "open" ? line.Split(' ')[^1] : "");
    }

    [Fact]
    public async Task A_row_whose_turns_always_fail_fails()
    {
        Subjects subjects = new((_, _) => throw new BenchFailedException("it stalled"));
        LoadRun run = new(["c100-h2-get-0"], ["direct"], TimeSpan.FromSeconds(1), TextWriter.Null, start: subjects.StartAsync);

        await Assert.ThrowsAsync<BenchFailedException>(() => run.RunAsync(TestContext.Current.CancellationToken));
        Assert.Equal(subjects.Started, subjects.Disposed);
    }

    private static WallMeasurement RateOf(string mode, double rate) => new("c100-h2-get-0", mode, 1000, rate, 1, 1, 2, 1, null, null);

    private static Measurement Measured(double ratio, double? percentile99, double? segments) =>
        Measurement.Of("c100-h2-get-0", "ktls", Measurement.Instructions, null, [1000]) with
        {
            Ratio = ratio,
            Load = new LoadFigures(1, 2, null, null, null, null) { Percentile99Ratio = percentile99, SegmentsRatio = segments },
        };

    /// <summary>
    /// Represents an operation that takes twice as long in rounds in which the runtime compiles methods, and compiles
    /// for a hundredth of its time in the others.
    /// </summary>
    private sealed class CompilingScenario(int compilingRounds) : Scenario
    {
        public static readonly TimeSpan Compiled = TimeSpan.FromMilliseconds(1);

        public override int OperationsPerRound => 1;

        public int Rounds { get; private set; }

        public TimeSpan CompilationTime { get; private set; }

        public override Task PrepareAsync() => Task.CompletedTask;

        public override Task RunAsync(int operations)
        {
            bool compiles = Rounds < compilingRounds;
            Rounds++;
            CompilationTime += compiles ? Compiled : Compiled / 100;
            Times!.Add(compiles ? 2 * Compiled : Compiled);
            return Task.CompletedTask;
        }

        public override ValueTask DisposeAsync() => ValueTask.CompletedTask;
    }

    /// <summary>Represents the processes of a run, whose rates a function says.</summary>
    /// <param name="rate">A function of the mode and of the number of measurements so far, this one included.</param>
    private sealed class Subjects(Func<string, int, double> rate)
    {
        public Func<string, int, double> Rate => rate;

        public List<string> Measured { get; } = [];

        public int Started { get; private set; }

        public int Disposed { get; private set; }

        public Task<ILoadSubject> StartAsync(string row, string mode, CancellationToken cancellationToken)
        {
            Started++;
            return Task.FromResult<ILoadSubject>(new Subject(this, mode));
        }

        private sealed class Subject(Subjects all, string mode) : ILoadSubject
        {
            public Task<WallMeasurement> MeasureAsync(CancellationToken cancellationToken)
            {
                all.Measured.Add(mode);
                return Task.FromResult(RateOf(mode, all.Rate(mode, all.Measured.Count)));
            }

            public ValueTask DisposeAsync()
            {
                all.Disposed++;
                return ValueTask.CompletedTask;
            }
        }
    }
}

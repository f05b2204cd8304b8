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
        await using HttpLoad load = new(ModeTable.Create(ModeTable.Stock, certificates, resume: false), certificates, kind, 10);
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
    }

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
        Goal goal = Goal.All.Single(goal => goal is { Scenario: "c100-h2-get-0", Mode: "ktls" });
        Assert.Equal("<= 0.75, p99 <= 1.00, segments <= 1.10", goal.Describe(Measurement.Instructions));
        Assert.Equal("", goal.Judge(Measured(0.75, 1, 1.1), []));
        Assert.Equal("ratio, p99, segments", goal.Judge(Measured(0.76, 1.01, 1.11), []));

        // A figure that could not be counted does not miss its goal.
        Assert.Equal("", goal.Judge(Measured(0.75, null, null), []));
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
    public async Task A_pair_that_fails_is_measured_again_and_counted()
    {
        int measured = 0;
        await using StringWriter output = new();
        LoadRun run = new(["c100-h2-get-0"], ["direct"], TimeSpan.FromSeconds(1), output, (row, mode, _) =>
            ++measured == 4 ? throw new BenchFailedException("it stalled") : Task.FromResult(RateOf(mode, 100)));

        LoadMeasurement row = Assert.Single((await run.RunAsync(TestContext.Current.CancellationToken)).Rows);

        Assert.Equal((5, 1, 12), (row.RateRatios.Count, row.Failures, measured));
        Assert.StartsWith("a pair of c100-h2-get-0 direct is measured again: it stalled", output.ToString(), StringComparison.Ordinal);
    }

    [Fact]
    public async Task The_modes_of_a_turn_share_its_stock_stream()
    {
        List<string> measured = [];
        LoadRun run = new(["c100-h2-get-0"], ["direct", "direct-client"], TimeSpan.FromSeconds(1), TextWriter.Null, (row, mode, _) =>
        {
            measured.Add(mode);
            return Task.FromResult(RateOf(mode, measured.Count));
        });

        IReadOnlyList<LoadMeasurement> rows = (await run.RunAsync(TestContext.Current.CancellationToken)).Rows;

        Assert.Equal(Enumerable.Repeat((string[])["sslstream", "direct", "direct-client"], 5).SelectMany(turn => turn), measured);
        Assert.Equal([2, 1.25, 1.143, 1.1, 1.077], rows[0].RateRatios);
        Assert.Equal([3, 1.5, 1.286, 1.2, 1.154], rows[1].RateRatios);
    }

    [Fact]
    public async Task A_row_whose_pairs_always_fail_fails()
    {
        LoadRun run = new(["c100-h2-get-0"], ["direct"], TimeSpan.FromSeconds(1), TextWriter.Null, (_, _, _) =>
            throw new BenchFailedException("it stalled"));

        await Assert.ThrowsAsync<BenchFailedException>(() => run.RunAsync(TestContext.Current.CancellationToken));
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
}

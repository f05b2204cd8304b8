using System.Diagnostics;
using System.Runtime;
using KernelTls.Bench.Scenarios;
using KernelTls.Bench.Servers;

namespace KernelTls.Bench.Wall;

/// <summary>Runs a scenario for a given time and records the duration of each operation.</summary>
internal static class WallClock
{
    /// <summary>
    /// The number of lengths of the measurement after which it begins although methods are still being compiled.
    /// </summary>
    private const int LongestWarmUp = 10;

    /// <summary>
    /// How long the runtime must not have compiled a method before the measurement begins. Hot methods are compiled up to three
    /// times, and with 100 requests at a time the final code serves up to twice as many.
    /// </summary>
    private static readonly TimeSpan s_quiet = TimeSpan.FromSeconds(1);

    /// <summary>Returns the longest intended duration of a measurement of <paramref name="length"/> with its warm-up.</summary>
    public static TimeSpan LongestOf(TimeSpan length) => (1 + LongestWarmUp) * length;

    /// <summary>Warms a scenario up and measures it once.</summary>
    /// <param name="name">The name of the row.</param>
    /// <param name="mode">The mode of the scenario.</param>
    /// <param name="scenario">The scenario to run.</param>
    /// <param name="length">The minimum duration of the measurement.</param>
    public static async Task<WallMeasurement> MeasureAsync(string name, string mode, Scenario scenario, TimeSpan length)
    {
        int operations = await WarmUpAsync(scenario, length);
        return await MeasureAsync(name, mode, scenario, operations, length);
    }

    /// <summary>Measures a scenario that is warm.</summary>
    /// <param name="name">The name of the row.</param>
    /// <param name="mode">The mode of the scenario.</param>
    /// <param name="scenario">The scenario to run.</param>
    /// <param name="operations">The number of operations of a round.</param>
    /// <param name="length">The minimum duration of the measurement.</param>
    public static async Task<WallMeasurement> MeasureAsync(string name, string mode, Scenario scenario, int operations, TimeSpan length)
    {
        List<TimeSpan> times = [];
        scenario.Times = times;
        long contentions = Monitor.LockContentionCount;
        TimeSpan before = ProcessClock.Read(scenario.MeasuredProcess);
        await RunForAsync(scenario, operations, length);
        TimeSpan processor = ProcessClock.Read(scenario.MeasuredProcess) - before;
        contentions = Monitor.LockContentionCount - contentions;
        scenario.Times = null;

        // Count separately, so that counting does not affect the times.
        (long? calls, string? notCounted) = await SystemCalls.CountAsync(scenario.MeasuredProcess, () => RunRoundAsync(scenario, scenario.OperationsPerRound));
        double? callsPerOp = calls is { } count ? Math.Round((double)count / scenario.OperationsPerRound, 1) : null;
        return WallMeasurement.Of(name, mode, times, scenario.Concurrency, processor, callsPerOp, notCounted) with
        {
            ContentionsPerOp = Math.Round((double)contentions / times.Count, 5),
        };
    }

    /// <summary>
    /// Warms up for a third of the duration of a measurement or longer, until no more methods are compiled. Returns the number of
    /// operations of a round. A concurrent round does not have all its operations in progress at its beginning and its end, so it has to be
    /// long.
    /// </summary>
    /// <param name="scenario">The scenario to run, which nothing has run yet.</param>
    /// <param name="length">The duration of a measurement.</param>
    public static async Task<int> WarmUpAsync(Scenario scenario, TimeSpan length)
    {
        await scenario.PrepareAsync().InTime("the first connection");
        TimeSpan round = length / 3;
        await RunForAsync(scenario, scenario.OperationsPerRound, round);
        await RunUntilCompiledAsync(scenario, LongestWarmUp * length);
        if (scenario.Concurrency == 1)
        {
            return scenario.OperationsPerRound;
        }

        long begun = Stopwatch.GetTimestamp();
        await RunRoundAsync(scenario, scenario.OperationsPerRound);
        return scenario.OperationsPerRound * (int)Math.Max(1, Math.Ceiling(round / Stopwatch.GetElapsedTime(begun)));
    }

    private static async Task RunUntilCompiledAsync(Scenario scenario, TimeSpan longest)
    {
        long begun = Stopwatch.GetTimestamp();
        long changed = begun;
        long methods = JitInfo.GetCompiledMethodCount();
        while (Stopwatch.GetElapsedTime(changed) < s_quiet && Stopwatch.GetElapsedTime(begun) < longest)
        {
            await RunRoundAsync(scenario, scenario.OperationsPerRound);
            long now = JitInfo.GetCompiledMethodCount();
            if (now != methods)
            {
                methods = now;
                changed = Stopwatch.GetTimestamp();
            }
        }
    }

    private static async Task RunForAsync(Scenario scenario, int operations, TimeSpan length)
    {
        long begun = Stopwatch.GetTimestamp();
        do
        {
            await RunRoundAsync(scenario, operations);
        }
        while (Stopwatch.GetElapsedTime(begun) < length);
    }

    private static async Task RunRoundAsync(Scenario scenario, int operations)
    {
        await scenario.RunAsync(operations).InTime("a round");
        scenario.Verify();
    }
}

using KernelTls.Bench.Report;
using KernelTls.Bench.Scenarios;
using KernelTls.Bench.Wall;

namespace KernelTls.Bench;

/// <summary>
/// Measures figures of load other than instructions. Each figure has separate rounds, because observing a round affects
/// it.
/// </summary>
internal static class LoadMeter
{
    /// <summary>
    /// The number of timed rounds that count. It is large enough that each percentile has enough operations above it that
    /// are neither the first nor the last of a round, and that about half of the rounds collect garbage.
    /// </summary>
    public const int TimedRounds = 8;

    private const int MostTimedRounds = 10 * TimedRounds;

    /// <summary>How much of its longest operation a round may spend on compiling.</summary>
    private const double MostCompiling = 0.05;

    /// <param name="scenario">A scenario that has settled.</param>
    /// <param name="hasTls">Whether the connections carry TLS records to count.</param>
    /// <param name="compilationTime">Returns how long the runtime has compiled methods.</param>
    public static async Task<LoadFigures> MeasureAsync(Scenario scenario, bool hasTls, Func<TimeSpan> compilationTime)
    {
        List<TimeSpan> times = await TimeAsync(scenario, compilationTime, Meter.Compilation);
        (long? calls, _) = await SystemCalls.CountAsync(scenario.MeasuredProcess, () => RunRoundAsync(scenario));
        TcpTraffic? traffic = await TapAsync(scenario, hasTls);
        return new LoadFigures(
            Instructions(times, 0.5),
            Instructions(times, 0.99),
            PerOperation(scenario, calls),
            PerOperation(scenario, traffic?.Segments),
            hasTls ? PerOperation(scenario, traffic?.Records) : null,
            scenario.Resumed is { } resumed ? Math.Round(resumed, 2) : null);
    }

    /// <summary>
    /// Times rounds of compiled code and returns the sorted durations of their operations. A round during which the runtime
    /// compiles for long does not count: on one processor all operations in progress then wait for the compiler, and
    /// they are the slowest hundredth.
    /// </summary>
    /// <param name="scenario">A scenario that has settled.</param>
    /// <param name="compilationTime">Returns how long the runtime has compiled methods.</param>
    /// <param name="pause">The time before each round, in which the compiler's thread can work.</param>
    public static async Task<List<TimeSpan>> TimeAsync(Scenario scenario, Func<TimeSpan> compilationTime, TimeSpan pause)
    {
        List<TimeSpan> times = [];
        int counted = 0;
        for (int rounds = 0; counted < TimedRounds; rounds++)
        {
            if (rounds == MostTimedRounds)
            {
                throw new BenchFailedException(
                    $"the runtime compiled methods for long in all but {counted} of {rounds} timed rounds, and {TimedRounds} others are needed");
            }

            await Task.Delay(pause);
            List<TimeSpan> round = [];
            scenario.Times = round;
            TimeSpan before = compilationTime();
            await RunRoundAsync(scenario);
            scenario.Times = null;
            if (compilationTime() - before <= MostCompiling * round.Max())
            {
                counted++;
                times.AddRange(round);
            }
        }

        times.Sort();
        return times;
    }

    private static async Task<TcpTraffic?> TapAsync(Scenario scenario, bool hasTls)
    {
        using WireTap? tap = WireTap.TryOpen(scenario.Port ?? throw new BenchFailedException("there is no port to listen to"), hasTls);
        if (tap is null)
        {
            return null;
        }

        await RunRoundAsync(scenario);
        return tap.Read();
    }

    private static async Task RunRoundAsync(Scenario scenario)
    {
        await scenario.RunAsync(scenario.OperationsPerRound).InTime($"a round of {scenario.OperationsPerRound} operations");
        scenario.Verify();
    }

    private static double Instructions(List<TimeSpan> sorted, double part) => Math.Round(Percentiles.Of(sorted, part).TotalNanoseconds);

    private static double? PerOperation(Scenario scenario, long? count) =>
        count is { } all ? Math.Round((double)all / scenario.OperationsPerRound, 3) : null;
}

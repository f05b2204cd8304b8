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
    /// The number of timed rounds. It is large enough that each percentile has enough operations above it that are
    /// neither the first nor the last of a round.
    /// </summary>
    private const int TimedRounds = 3;

    /// <param name="scenario">A scenario that has settled.</param>
    /// <param name="hasTls">Whether the connections carry TLS records to count.</param>
    public static async Task<LoadFigures> MeasureAsync(Scenario scenario, bool hasTls)
    {
        List<TimeSpan> times = [];
        scenario.Times = times;
        for (int i = 0; i < TimedRounds; i++)
        {
            await RunRoundAsync(scenario);
        }

        scenario.Times = null;
        times.Sort();
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

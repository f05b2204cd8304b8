using System.Diagnostics;
using KernelTls.Bench.Scenarios;
using KernelTls.Bench.Servers;

namespace KernelTls.Bench.Wall;

/// <summary>Runs a scenario for some time, one operation after the other, and keeps what each took.</summary>
internal static class WallClock
{
    /// <param name="name">The row.</param>
    /// <param name="mode">The mode that the scenario is in.</param>
    /// <param name="scenario">What runs.</param>
    /// <param name="length">How long it is measured for at least; a third of it goes before, to warm up.</param>
    public static async Task<WallMeasurement> MeasureAsync(string name, string mode, Scenario scenario, TimeSpan length)
    {
        await scenario.PrepareAsync().InTime("the first connection");
        await RunForAsync(scenario, length / 3);

        List<TimeSpan> times = [];
        scenario.Times = times;
        TimeSpan before = ProcessClock.Read(scenario.MeasuredProcess);
        await RunForAsync(scenario, length);
        TimeSpan processor = ProcessClock.Read(scenario.MeasuredProcess) - before;
        scenario.Times = null;

        // Apart, so that counting takes no part in the times.
        (long? calls, string? notCounted) = await SystemCalls.CountAsync(scenario.MeasuredProcess, () => RunRoundAsync(scenario));
        double? callsPerOp = calls is { } count ? Math.Round((double)count / scenario.OperationsPerRound, 1) : null;
        return WallMeasurement.Of(name, mode, times, processor, callsPerOp, notCounted);
    }

    private static async Task RunForAsync(Scenario scenario, TimeSpan length)
    {
        long begun = Stopwatch.GetTimestamp();
        do
        {
            await RunRoundAsync(scenario);
        }
        while (Stopwatch.GetElapsedTime(begun) < length);
    }

    private static async Task RunRoundAsync(Scenario scenario)
    {
        await scenario.RunAsync(scenario.OperationsPerRound).InTime("a round");
        scenario.Verify();
    }
}

using KernelTls.Bench.Report;
using KernelTls.Bench.Scenarios;

namespace KernelTls.Bench;

/// <summary>
/// Runs a scenario in rounds and reads what the process used. Where a guest nanosecond is an instruction (eng/lab
/// --instruction-count), processor time is an instruction count, user and kernel alike.
/// </summary>
internal static class Meter
{
    private const int MeasuredRounds = 5;
    private const int MostWarmUpRounds = 20;
    private const double Settled = 0.01;
    private const double InstructionsPerMillisecond = 1_000_000;

    // Longer than the runtime waits before it compiles hot methods again, which it does on a thread of its own.
    private static readonly TimeSpan s_compilation = TimeSpan.FromMilliseconds(400);

    public static async Task<Measurement> MeasureAsync(string name, string mode, Scenario scenario)
    {
        await scenario.PrepareAsync().InTime("the first connection");
        await WarmUpAsync(scenario);

        List<double> rounds = [];
        long allocated = 0;
        for (int i = 0; i < MeasuredRounds; i++)
        {
            long allocatedBefore = GC.GetTotalAllocatedBytes(precise: true);
            rounds.Add(await RunRoundAsync(scenario));
            allocated += GC.GetTotalAllocatedBytes(precise: true) - allocatedBefore;
            scenario.Verify();
        }

        double allocatedPerOp = (double)allocated / (MeasuredRounds * scenario.OperationsPerRound);
        return Measurement.Of(name, mode, Measurement.Instructions, allocatedPerOp, rounds);
    }

    private static async Task WarmUpAsync(Scenario scenario)
    {
        double last = double.MaxValue;
        for (int i = 1; i <= MostWarmUpRounds; i++)
        {
            double next = await RunRoundAsync(scenario);
            scenario.Verify();
            await Task.Delay(s_compilation);
            if (i >= scenario.WarmUpRounds && Math.Abs(next - last) <= Settled * next)
            {
                break;
            }

            last = next;
        }

        GC.Collect();
        GC.WaitForPendingFinalizers();
    }

    private static async Task<double> RunRoundAsync(Scenario scenario)
    {
        TimeSpan before = Environment.CpuUsage.TotalTime;
        await scenario.RunAsync(scenario.OperationsPerRound).InTime($"a round of {scenario.OperationsPerRound} operations");
        TimeSpan used = Environment.CpuUsage.TotalTime - before;
        return used.TotalMilliseconds * InstructionsPerMillisecond / scenario.OperationsPerRound;
    }
}

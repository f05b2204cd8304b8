using KernelTls.Bench.Report;
using KernelTls.Bench.Scenarios;
using KernelTls.Bench.Servers;

namespace KernelTls.Bench;

/// <summary>
/// Runs a scenario in rounds and reads what the process that counts has used. Where a guest nanosecond is an instruction (eng/lab
/// --instruction-count), processor time is an instruction count, user and kernel alike.
/// </summary>
internal static class Meter
{
    private const int MeasuredRounds = 3;
    private const int ProfiledRounds = 10;
    private const int MostWarmUpRounds = 30;

    // So many rounds in a row, each as the one before.
    private const int SettledRounds = 3;
    private const double Settled = 0.01;
    private const double InstructionsPerMillisecond = 1_000_000;

    // How much longer the round is that allocation is counted by. What a round itself allocates differs by some hundred bytes:
    // no goal of bytes may take them for its operations', so there are many more of those.
    private const int LongerRound = 2;
    private const int MoreOperations = 600;

    /// <summary>A pause for the compiler, which has a thread of its own.</summary>
    public static readonly TimeSpan Compilation = TimeSpan.FromMilliseconds(400);

    public static async Task<Measurement> MeasureAsync(string name, string mode, Scenario scenario)
    {
        int operations = scenario.OperationsPerRound;
        int longer = LongerRound * operations;
        if (Goal.LimitsAllocation(name))
        {
            longer = Math.Max(longer, operations + MoreOperations);
        }

        await scenario.PrepareAsync().InTime("the first connection");
        int warmUpRounds = await WarmUpAsync(scenario);

        // The first of all is not kept: it wakes threads that the pause has put to sleep, and code is compiled for its being awaited here.
        _ = await RunRoundAsync(scenario, operations);
        double[] rounds = new double[MeasuredRounds];
        long allocated = 0;
        for (int i = 0; i < rounds.Length; i++)
        {
            (double instructions, allocated) = await RunRoundAsync(scenario, operations);
            rounds[i] = instructions / operations;
        }

        // Without those of the round itself: by how much a longer round allocates more.
        double? allocatedPerOp = null;
        if (scenario.MeasuredProcess == Environment.ProcessId)
        {
            // Awaited here: a method for it would allocate its own state within the round.
            long byMore = (await RunRoundAsync(scenario, longer)).Allocated;
            allocatedPerOp = Math.Max(0, (double)(byMore - allocated) / (longer - operations));
        }

        return Measurement.Of(name, mode, Measurement.Instructions, allocatedPerOp, rounds) with { WarmUpRounds = warmUpRounds + 1 };
    }

    public static async Task ProfileAsync(Scenario scenario)
    {
        await scenario.PrepareAsync().InTime("the first connection");
        _ = await WarmUpAsync(scenario);
        await Profiler.ProfileAsync(scenario.MeasuredProcess, () => RunRoundAsync(scenario, ProfiledRounds * scenario.OperationsPerRound));
    }

    /// <summary>How many rounds it took.</summary>
    private static async Task<int> WarmUpAsync(Scenario scenario)
    {
        double last = double.MaxValue;
        int rounds = 0;
        int alike = 0;
        while (rounds < MostWarmUpRounds && (rounds < scenario.WarmUpRounds || alike < SettledRounds))
        {
            rounds++;
            double next = (await RunRoundAsync(scenario, scenario.OperationsPerRound)).Instructions;
            await Task.Delay(Compilation);
            alike = Math.Abs(next - last) <= Settled * next ? alike + 1 : 1;
            last = next;
        }

        return rounds;
    }

    private static async Task<(double Instructions, long Allocated)> RunRoundAsync(Scenario scenario, int operations)
    {
        TimeSpan compiling = CompilerClock.Read(scenario.MeasuredProcess);
        long allocated = GC.GetTotalAllocatedBytes(precise: true);
        TimeSpan before = ProcessClock.Read(scenario.MeasuredProcess);
        await scenario.RunAsync(operations).InTime($"a round of {operations} operations");
        TimeSpan used = ProcessClock.Read(scenario.MeasuredProcess) - before;
        allocated = GC.GetTotalAllocatedBytes(precise: true) - allocated;
        used -= CompilerClock.Read(scenario.MeasuredProcess) - compiling;
        scenario.Verify();
        return (used.TotalMilliseconds * InstructionsPerMillisecond, allocated);
    }
}

using System.Runtime;
using KernelTls.Bench.Modes;
using KernelTls.Bench.Report;
using KernelTls.Bench.Scenarios;
using KernelTls.Bench.Servers;

namespace KernelTls.Bench;

/// <summary>
/// Runs a scenario in rounds and reads the processor time of the measured process. In a guest whose nanosecond is one
/// instruction (eng/lab --instruction-count), processor time is an instruction count that includes user and kernel
/// mode.
/// </summary>
internal static class Meter
{
    /// <summary>The number of rounds after which a scenario is measured even if it has not settled.</summary>
    public const int MostWarmUpRounds = 30;

    private const int MeasuredRounds = 3;
    private const int ProfiledRounds = 10;

    // The scenario has settled when this number of consecutive rounds agree.
    private const int SettledRounds = 3;
    private const double Settled = 0.01;
    private const double InstructionsPerMillisecond = 1_000_000;

    // The factor by which the round that measures allocation is longer. The allocation of a round itself varies by some
    // hundred bytes. A goal in bytes must not attribute those bytes to the operations, so such a round has many more
    // operations.
    private const int LongerRound = 2;
    private const int MoreOperations = 600;

    /// <summary>The pause in which the compiler's thread can work.</summary>
    public static readonly TimeSpan Compilation = TimeSpan.FromMilliseconds(400);

    public static async Task<Measurement> MeasureAsync(string name, string mode, Scenario scenario, int mostWarmUpRounds = MostWarmUpRounds)
    {
        int operations = scenario.OperationsPerRound;
        int longer = LongerRound * operations;
        if (Goal.LimitsAllocation(name))
        {
            longer = Math.Max(longer, operations + MoreOperations);
        }

        await scenario.PrepareAsync().InTime("the first connection");
        int warmUpRounds = await WarmUpAsync(scenario, mostWarmUpRounds);

        // Discard the first round. It wakes threads that slept during the pause, and the runtime compiles the code that
        // awaits it here.
        _ = await RunRoundAsync(scenario, operations);
        double[] rounds = new double[MeasuredRounds];
        long allocated = 0;
        for (int i = 0; i < rounds.Length; i++)
        {
            for (int part = 0; part < scenario.RoundsPerFigure; part++)
            {
                (double instructions, allocated) = await RunRoundAsync(scenario, operations);
                rounds[i] += instructions / (operations * scenario.RoundsPerFigure);
            }
        }

        // Exclude the allocation of the round itself: measure the additional allocation of a longer round.
        double? allocatedPerOp = null;
        if (scenario.MeasuredProcess == Environment.ProcessId)
        {
            // Await the round here. A separate method would allocate its state during the round.
            long byMore = (await RunRoundAsync(scenario, longer)).Allocated;
            allocatedPerOp = Math.Max(0, (double)(byMore - allocated) / (longer - operations));
        }

        return Measurement.Of(name, mode, Measurement.Instructions, allocatedPerOp, rounds) with
        {
            WarmUpRounds = warmUpRounds + 1,
            Load = scenario.Concurrency > 1
                ? await LoadMeter.MeasureAsync(scenario, hasTls: mode != ModeTable.Floor, () => JitInfo.GetCompilationTime())
                : null,
        };
    }

    /// <summary>Measures what a process does first: one round without warm-up, the compiler's work included.</summary>
    public static async Task<Measurement> MeasureStartAsync(string name, string mode, Scenario scenario)
    {
        await scenario.PrepareAsync().InTime("the server");
        long methods = JitInfo.GetCompiledMethodCount();
        TimeSpan before = ProcessClock.Read(scenario.MeasuredProcess);
        await scenario.RunAsync(scenario.OperationsPerRound).InTime($"the first {scenario.OperationsPerRound} operations");
        TimeSpan used = ProcessClock.Read(scenario.MeasuredProcess) - before;
        methods = JitInfo.GetCompiledMethodCount() - methods;
        scenario.Verify();
        double instructions = used.TotalMilliseconds * InstructionsPerMillisecond;
        return Measurement.Of(name, mode, Measurement.Instructions, null, [instructions / scenario.OperationsPerRound]) with
        {
            CompiledMethods = methods,
        };
    }

    public static async Task ProfileAsync(Scenario scenario)
    {
        await scenario.PrepareAsync().InTime("the first connection");
        _ = await WarmUpAsync(scenario, MostWarmUpRounds);
        await Profiler.ProfileAsync(scenario.MeasuredProcess, () => RunRoundAsync(scenario, ProfiledRounds * scenario.OperationsPerRound));
    }

    /// <summary>Runs rounds until the scenario has settled and returns their number.</summary>
    private static async Task<int> WarmUpAsync(Scenario scenario, int mostRounds)
    {
        double last = double.MaxValue;
        int rounds = 0;
        int alike = 0;
        while (rounds < mostRounds && (rounds < scenario.WarmUpRounds || alike < SettledRounds))
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

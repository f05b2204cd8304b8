using System.Diagnostics;

namespace KernelTls.Bench;

/// <summary>This program again, for one measurement.</summary>
internal static class BenchProcess
{
    private const string RealTimeLimit = "/proc/sys/kernel/sched_rt_runtime_us";

    private static readonly bool s_inCell = Environment.GetEnvironmentVariable("KTLS_CELL") is not null;

    /// <summary>Real-time processes, which these are, get all of the processor. In a cell only: it forgets.</summary>
    public static void PrepareMachine()
    {
        if (s_inCell)
        {
            File.WriteAllText(RealTimeLimit, "-1");
        }
    }

    /// <summary>What the process printed.</summary>
    /// <param name="arguments">Of this program.</param>
    /// <param name="isSteady">In surroundings that make figures repeat; else in those that applications have.</param>
    /// <param name="cancellationToken">Ends the process, and what it has started.</param>
    /// <exception cref="BenchFailedException">It failed, and has said why.</exception>
    public static async Task<string> RunAsync(string[] arguments, bool isSteady, CancellationToken cancellationToken)
    {
        ProcessStartInfo start = isSteady ? DescribeSteady(arguments) : DescribeChild(arguments);
        start.RedirectStandardOutput = true;
        using Process process = Process.Start(start)!;
        try
        {
            string output = await process.StandardOutput.ReadToEndAsync(cancellationToken);
            await process.WaitForExitAsync(cancellationToken);
            return process.ExitCode == 0
                ? output
                : throw new BenchFailedException($"'{string.Join(' ', arguments)}' ended with exit code {process.ExitCode}");
        }
        catch (OperationCanceledException)
        {
            process.Kill(entireProcessTree: true);
            throw;
        }
    }

    /// <summary>This program again, in the surroundings of the process that starts it: they are inherited.</summary>
    public static ProcessStartInfo DescribeChild(params string[] arguments) =>
        new(Environment.ProcessPath!, [typeof(BenchProcess).Assembly.Location, .. arguments]);

    /// <summary>
    /// A round trip would differ by a tenth and more from process to process, in every mode, by how threads hand over. First
    /// come, first served without time slices, addresses that are not random, a thread pool that does not experiment with its
    /// size and code that does not depend on which calls came first make it repeat.
    /// </summary>
    private static ProcessStartInfo DescribeSteady(string[] arguments)
    {
        ProcessStartInfo dotnet = DescribeChild(arguments);
        string[] command = s_inCell
            ? ["chrt", "--fifo", "1", "setarch", "--addr-no-randomize", dotnet.FileName, .. dotnet.ArgumentList]
            : [dotnet.FileName, .. dotnet.ArgumentList];
        return new ProcessStartInfo(command[0], command[1..])
        {
            Environment =
            {
                ["DOTNET_HillClimbing_Disable"] = "1",
                ["DOTNET_TieredPGO"] = "0",
            },
        };
    }
}

using System.Diagnostics;
using System.Runtime.InteropServices;

namespace KernelTls.Bench;

/// <summary>perf, sampling by processor time: where a nanosecond is an instruction, a profile by instructions.</summary>
internal static partial class Profiler
{
    private const string Data = "/tmp/bench-perf.data";
    private const int Interrupt = 2;

    /// <summary>Samples the whole machine while <paramref name="work"/> runs, and prints what this process's part of it was.</summary>
    public static async Task ProfileAsync(Func<Task> work)
    {
        // A prime frequency does not fall into step with anything. The first message says that it samples.
        using (Process recorder = Start("record", "-a", "-e", "cpu-clock", "-F", "9973", "-g", "-o", Data))
        {
            // Sampling has begun when the file has grown a header; perf itself says nothing.
            for (int attempt = 0; !File.Exists(Data); attempt++)
            {
                await Task.Delay(TimeSpan.FromMilliseconds(50));
                if (attempt > 100 || recorder.HasExited)
                {
                    throw new BenchFailedException("perf does not start");
                }
            }

            await Task.Delay(TimeSpan.FromMilliseconds(500));
            await work();
            _ = kill(recorder.Id, Interrupt);
            await recorder.WaitForExitAsync().InTime("perf to write its samples");
        }

        foreach (string sort in new[] { "dso", "dso,symbol" })
        {
            using Process reporter = Start(
                "report", "-i", Data, "--stdio", "--no-children", "-g", "none", "--sort", sort,
                "--pid", $"{Environment.ProcessId}", "--percentage", "relative", "--percent-limit", "0.3");
            await reporter.WaitForExitAsync().InTime("perf's report");
        }
    }

    private static Process Start(params string[] arguments) => Process.Start(new ProcessStartInfo("perf", arguments))!;

    [LibraryImport("libc")]
    private static partial int kill(int process, int signal);
}

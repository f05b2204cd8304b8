using System.ComponentModel;
using System.Diagnostics;
using System.Globalization;

namespace KernelTls.Bench.Wall;

/// <summary>perf counts a process's system calls, all its threads, by the kernel's tracepoint: strace would stop it at each.</summary>
internal static class SystemCalls
{
    private const string Ready = "ready";

    /// <summary>How many the process makes while work is done; or why that cannot be told.</summary>
    public static async Task<(long? Count, string? NotCounted)> CountAsync(int processId, Func<Task> work)
    {
        // perf counts for as long as its command runs, and starts it when it counts.
        ProcessStartInfo start = new(
            "perf",
            ["stat", "-p", $"{processId}", "-e", "raw_syscalls:sys_enter", "-x", ",", "--", "sh", "-c", $"echo {Ready}; exec cat"])
        {
            RedirectStandardInput = true,
            RedirectStandardOutput = true,
            RedirectStandardError = true,
        };
        Process perf;
        try
        {
            perf = Process.Start(start)!;
        }
        catch (Win32Exception e)
        {
            return (null, e.Message);
        }

        using (perf)
        {
            Task<string> counts = perf.StandardError.ReadToEndAsync();
            if (await perf.StandardOutput.ReadLineAsync().InTime("perf to begin") == Ready)
            {
                await work();
            }

            perf.StandardInput.Close();
            return Parse(await counts.InTime("perf to end"));
        }
    }

    /// <summary>A line such as "123,,raw_syscalls:sys_enter,…", or words about what is not supported or not allowed.</summary>
    public static (long? Count, string? NotCounted) Parse(string said)
    {
        string first = said.Split('\n', StringSplitOptions.RemoveEmptyEntries).FirstOrDefault() ?? "perf said nothing";
        return long.TryParse(first.Split(',')[0], NumberStyles.None, CultureInfo.InvariantCulture, out long count)
            ? (count, null)
            : (null, $"perf: {first}");
    }
}

using System.ComponentModel;
using System.Diagnostics;
using System.Globalization;

namespace KernelTls.Bench.Wall;

/// <summary>
/// Counts the system calls of all threads of a process with perf and a kernel tracepoint. Unlike strace, perf does not
/// stop the process at each call.
/// </summary>
internal static class SystemCalls
{
    private const string Ready = "ready";

    /// <summary>
    /// Returns the number of system calls that the process makes during the work, or the reason why they cannot be
    /// counted.
    /// </summary>
    public static async Task<(long? Count, string? NotCounted)> CountAsync(int processId, Func<Task> work)
    {
        // The perf tool counts while its command runs, and it starts the command when it begins to count.
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

    /// <summary>
    /// Parses perf's output: a line such as "123,,raw_syscalls:sys_enter,…", or a message that counting is not
    /// supported or not permitted.
    /// </summary>
    public static (long? Count, string? NotCounted) Parse(string said)
    {
        string first = said.Split('\n', StringSplitOptions.RemoveEmptyEntries).FirstOrDefault() ?? "perf said nothing";
        return long.TryParse(first.Split(',')[0], NumberStyles.None, CultureInfo.InvariantCulture, out long count)
            ? (count, null)
            : (null, $"perf: {first}");
    }
}

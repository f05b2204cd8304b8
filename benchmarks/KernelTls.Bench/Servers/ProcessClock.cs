using System.Runtime.InteropServices;

namespace KernelTls.Bench.Servers;

/// <summary>What another process has used of the processor, user and kernel, to the nanosecond: its CPU-time clock.</summary>
/// <remarks>
/// The scheduler's own sum (sum_exec_runtime, as in /proc/PID/task/*/schedstat), which has in it threads that have ended too.
/// /proc/PID/stat has the same in hundredths of a second.
/// </remarks>
internal static partial class ProcessClock
{
    // The clock's number says whose it is: what clock_getcpuclockid(3) returns, linux/posix-timers.h.
    private const int ProcessIdShift = 3;
    private const int Scheduled = 2;

    public static TimeSpan Read(int processId) => clock_gettime((~processId << ProcessIdShift) | Scheduled, out Timespec time) == 0
        ? TimeSpan.FromSeconds(time.Seconds) + TimeSpan.FromTicks(time.Nanoseconds / TimeSpan.NanosecondsPerTick)
        : throw new BenchFailedException($"there is no processor time of process {processId}: it has ended");

    [LibraryImport("libc")]
    private static partial int clock_gettime(int clock, out Timespec time);

    private readonly struct Timespec
    {
        public readonly long Seconds;
        public readonly long Nanoseconds;
    }
}

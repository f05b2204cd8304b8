using System.Runtime.InteropServices;

namespace KernelTls.Bench.Servers;

/// <summary>
/// Reads the user and kernel processor time of another process in nanoseconds from its CPU-time clock.
/// </summary>
/// <remarks>
/// The value is the sum that the scheduler keeps (sum_exec_runtime, as in /proc/PID/task/*/schedstat). It includes
/// threads that have ended. The same value in /proc/PID/stat has a resolution of a hundredth of a second.
/// </remarks>
internal static partial class ProcessClock
{
    // The clock's number identifies the process. It is the value that clock_getcpuclockid(3) returns
    // (linux/posix-timers.h).
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

namespace KernelTls.Bench;

/// <summary>
/// Limits how long the benchmark waits. Each wait has a limit and reports the event that did not occur.
/// </summary>
internal static class Limits
{
    /// <summary>
    /// Limits one wait, in the guest's time. In a lab cell, one second is a billion instructions, and idle time passes
    /// sixty times as fast as on the host. A slow host therefore has five seconds to answer.
    /// </summary>
    private static readonly TimeSpan s_wait = TimeSpan.FromMinutes(5);

    /// <summary>Limits the process of one measurement, including all its waits.</summary>
    public static TimeSpan Measurement { get; } = 3 * s_wait;

    public static async Task InTime(this Task task, string what)
    {
        try
        {
            await task.WaitAsync(s_wait);
        }
        catch (TimeoutException) when (!task.IsCompleted)
        {
            throw new BenchFailedException($"waited {s_wait.TotalSeconds} s for {what}");
        }
    }

    public static async Task<T> InTime<T>(this Task<T> task, string what)
    {
        await ((Task)task).InTime(what);
        return await task;
    }
}

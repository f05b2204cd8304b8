namespace KernelTls.Bench;

/// <summary>Every wait has a limit and says what it waited for.</summary>
internal static class Limits
{
    /// <summary>
    /// In the guest's time, in which a second is a billion instructions, and in which idle time passes sixty times as fast as
    /// on the host: a host that is slow to answer has five seconds.
    /// </summary>
    private static readonly TimeSpan s_wait = TimeSpan.FromMinutes(5);

    /// <summary>For the process of one measurement, all its waits together.</summary>
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

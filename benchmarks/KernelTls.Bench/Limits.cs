namespace KernelTls.Bench;

/// <summary>Every wait has a limit and says what it waited for.</summary>
internal static class Limits
{
    /// <summary>In the guest's time, in which a second is a billion instructions and idle time passes at once.</summary>
    private static readonly TimeSpan s_wait = TimeSpan.FromMinutes(2);

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

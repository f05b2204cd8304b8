namespace KernelTls.IO;

/// <summary>Socket timeouts are milliseconds with 0 for "none"; waits take a TimeSpan with -1 ms for that.</summary>
internal static class SocketTimeouts
{
    public static TimeSpan ToTimeSpan(int milliseconds) =>
        milliseconds <= 0 ? Timeout.InfiniteTimeSpan : TimeSpan.FromMilliseconds(milliseconds);

    /// <summary>Blocks until <paramref name="work"/> is done, which is cancelled when the time is over.</summary>
    /// <exception cref="TimeoutException">The time was over.</exception>
    public static void Within(int milliseconds, Func<CancellationToken, Task> work)
    {
        using CancellationTokenSource limit = new(ToTimeSpan(milliseconds));
        try
        {
            work(limit.Token).GetAwaiter().GetResult();
        }
        catch (OperationCanceledException e) when (limit.IsCancellationRequested)
        {
            throw new TimeoutException(e.Message, e);
        }
    }
}

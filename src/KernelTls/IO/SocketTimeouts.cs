namespace KernelTls.IO;

/// <summary>Socket timeouts are milliseconds with 0 for "none"; waits take a TimeSpan with -1 ms for that.</summary>
internal static class SocketTimeouts
{
    public static TimeSpan ToTimeSpan(int milliseconds) =>
        milliseconds <= 0 ? Timeout.InfiniteTimeSpan : TimeSpan.FromMilliseconds(milliseconds);
}

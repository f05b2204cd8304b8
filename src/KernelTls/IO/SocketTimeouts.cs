using System.Net.Sockets;

namespace KernelTls.IO;

/// <summary>Socket timeouts are milliseconds with 0 for "none"; waits take a TimeSpan with -1 ms for that.</summary>
internal static class SocketTimeouts
{
    public static TimeSpan ToTimeSpan(int milliseconds) =>
        milliseconds <= 0 ? Timeout.InfiniteTimeSpan : TimeSpan.FromMilliseconds(milliseconds);

    /// <summary>Blocks until <paramref name="work"/> is done, which is cancelled when the time is over.</summary>
    /// <exception cref="IOException">The time was over: <paramref name="failed"/>, as every socket's timeout.</exception>
    public static void Within(int milliseconds, string failed, Func<CancellationToken, Task> work)
    {
        using CancellationTokenSource limit = new(ToTimeSpan(milliseconds));
        try
        {
            work(limit.Token).GetAwaiter().GetResult();
        }
        catch (OperationCanceledException) when (limit.IsCancellationRequested)
        {
            throw TlsErrors.Socket(failed, SocketError.TimedOut);
        }
    }
}

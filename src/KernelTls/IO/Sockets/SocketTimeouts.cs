using System.Net.Sockets;

namespace KernelTls.IO;

/// <summary>
/// Converts socket timeouts, which are milliseconds with 0 for "none", to the TimeSpan of waits, which is -1 ms for
/// "none".
/// </summary>
internal static class SocketTimeouts
{
    public static TimeSpan ToTimeSpan(int milliseconds) =>
        milliseconds <= 0 ? Timeout.InfiniteTimeSpan : TimeSpan.FromMilliseconds(milliseconds);

    /// <summary>Blocks until <paramref name="work"/> is done, and cancels it when the time is over.</summary>
    /// <exception cref="IOException">
    /// The time is over. The message is <paramref name="failed"/>, as for every socket timeout.
    /// </exception>
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

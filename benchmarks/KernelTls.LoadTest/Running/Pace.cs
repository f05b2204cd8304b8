using System.Diagnostics;

namespace KernelTls.LoadTest.Running;

/// <summary>Spreads operations evenly over time, or lets them follow each other at once. This class is thread-safe.</summary>
/// <param name="perSecond">The operations per second, or 0 for as many as can be.</param>
internal sealed class Pace(int perSecond)
{
    private readonly long _start = Stopwatch.GetTimestamp();
    private long _count;

    /// <summary>Waits until the next operation is due.</summary>
    /// <returns>
    /// The timestamp from which the operation's duration counts. If it could not begin when it was due, because all callers were busy, that is
    /// when it was due: a slow server must not make the load lighter unseen.
    /// </returns>
    public async ValueTask<long> WaitAsync(CancellationToken cancellationToken)
    {
        if (perSecond == 0)
        {
            return Stopwatch.GetTimestamp();
        }

        long due = _start + ((Interlocked.Increment(ref _count) - 1) * Stopwatch.Frequency / perSecond);
        TimeSpan early = Stopwatch.GetElapsedTime(Stopwatch.GetTimestamp(), due);
        if (early <= TimeSpan.Zero)
        {
            return due;
        }

        await Task.Delay(early, cancellationToken);
        return Stopwatch.GetTimestamp();
    }
}

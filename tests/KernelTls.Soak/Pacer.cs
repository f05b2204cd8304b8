namespace KernelTls.Soak;

/// <summary>
/// Keeps the process below its share of the processors: each client waits between two operations, longer the more the
/// process has used recently. Thread-safe.
/// </summary>
internal sealed class Pacer(double cores)
{
    private static readonly TimeSpan s_interval = TimeSpan.FromMilliseconds(500);
    private const double LongestPause = 5_000;

    private readonly Lock _lock = new();
    private TimeSpan _used = Environment.CpuUsage.TotalTime;
    private long _since = Environment.TickCount64;
    private double _pause = cores < Environment.ProcessorCount ? 50 : 0;

    /// <summary>Waits for the time that a client must wait between two operations.</summary>
    public Task WaitAsync(Random random, CancellationToken cancellationToken)
    {
        double pause = Adapt();
        return pause < 1 ? Task.CompletedTask : Task.Delay(TimeSpan.FromMilliseconds(pause * (0.5 + random.NextDouble())), cancellationToken);
    }

    private double Adapt()
    {
        lock (_lock)
        {
            double passed = Environment.TickCount64 - _since;
            if (cores < Environment.ProcessorCount && passed >= s_interval.TotalMilliseconds)
            {
                TimeSpan used = Environment.CpuUsage.TotalTime;
                double share = (used - _used).TotalMilliseconds / passed / cores;
                _pause = Math.Clamp(_pause * Math.Clamp(share, 0.7, 1.5), 1, LongestPause);
                _used = used;
                _since += (long)passed;
            }

            return _pause;
        }
    }
}

namespace KernelTls.Tests;

/// <summary>A clock that advances only when a test advances it.</summary>
internal sealed class ManualTime : TimeProvider
{
    private long _now = 1_000_000;

    public override long TimestampFrequency => TimeSpan.TicksPerSecond;

    public override long GetTimestamp() => _now;

    public void Advance(TimeSpan time) => _now += time.Ticks;
}

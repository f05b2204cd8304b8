namespace KernelTls.Soak;

/// <summary>Causes the <see cref="Fault"/>, about once in ten seconds. Thread-safe.</summary>
internal sealed class Sabotage(Fault fault)
{
    private const int Interval = 10_000;
    private readonly List<object> _kept = [];
    private long _next = Environment.TickCount64 + Interval;

    /// <summary>Returns whether it is time for this fault, once for each time.</summary>
    public bool IsDue(Fault wanted)
    {
        long next = Volatile.Read(ref _next);
        long now = Environment.TickCount64;
        return fault == wanted && now >= next && Interlocked.CompareExchange(ref _next, now + Interval, next) == next;
    }

    /// <summary>Causes the faults that are not part of an operation.</summary>
    public void Act()
    {
        if (IsDue(Fault.Descriptor))
        {
            Keep(File.OpenHandle("/dev/null"));
        }

        if (fault == Fault.Memory)
        {
            Keep(new byte[2_000]);
        }
    }

    /// <summary>Keeps an object forever.</summary>
    public void Keep(object leaked)
    {
        lock (_kept)
        {
            _kept.Add(leaked);
        }
    }
}

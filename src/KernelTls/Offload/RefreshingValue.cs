namespace KernelTls.Offload;

/// <summary>
/// Caches a value that is determined on first use. A value that is not final is determined again after a pause.
/// Thread-safe.
/// </summary>
/// <remarks>
/// All threads wait for the first value. While one thread determines it again, the others use the known value.
/// </remarks>
/// <param name="find">The function that determines the value. It must not throw.</param>
/// <param name="isFinal">The predicate that indicates whether a value is cached permanently.</param>
/// <param name="pause">The time for which a value that is not final is used.</param>
/// <param name="clock">The clock that measures the pause.</param>
internal sealed class RefreshingValue<T>(Func<T> find, Predicate<T> isFinal, TimeSpan pause, TimeProvider clock)
{
    private readonly Lock _lock = new();
    private volatile Evaluation? _current;

    /// <summary>Gets a value that indicates whether the value has been determined.</summary>
    public bool IsKnown => _current is not null;

    public T Value
    {
        get
        {
            Evaluation? known = _current;
            if (known is not null && (known.IsFinal || clock.GetElapsedTime(known.Timestamp) < pause))
            {
                return known.Value;
            }

            return known is null ? GetFirst() : Refresh(known);
        }
    }

    private T GetFirst()
    {
        lock (_lock)
        {
            return (_current ??= Evaluate()).Value;
        }
    }

    private T Refresh(Evaluation known)
    {
        if (!_lock.TryEnter())
        {
            return known.Value;
        }

        try
        {
            if (_current == known)
            {
                _current = Evaluate();
            }

            return _current!.Value;
        }
        finally
        {
            _lock.Exit();
        }
    }

    private Evaluation Evaluate()
    {
        T value = find();
        return new Evaluation(value, isFinal(value), clock.GetTimestamp());
    }

    private sealed record Evaluation(T Value, bool IsFinal, long Timestamp);
}

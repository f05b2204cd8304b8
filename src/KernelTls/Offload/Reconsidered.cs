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
internal sealed class Reconsidered<T>(Func<T> find, Predicate<T> isFinal, TimeSpan pause, TimeProvider clock)
{
    private readonly Lock _lock = new();
    private volatile Answer? _answer;

    /// <summary>Gets a value that indicates whether the value has been determined.</summary>
    public bool IsKnown => _answer is not null;

    public T Value
    {
        get
        {
            Answer? known = _answer;
            if (known is not null && (known.IsFinal || clock.GetElapsedTime(known.Found) < pause))
            {
                return known.Value;
            }

            return known is null ? First() : Again(known);
        }
    }

    private T First()
    {
        lock (_lock)
        {
            return (_answer ??= Ask()).Value;
        }
    }

    private T Again(Answer known)
    {
        if (!_lock.TryEnter())
        {
            return known.Value;
        }

        try
        {
            if (_answer == known)
            {
                _answer = Ask();
            }

            return _answer!.Value;
        }
        finally
        {
            _lock.Exit();
        }
    }

    private Answer Ask()
    {
        T value = find();
        return new Answer(value, isFinal(value), clock.GetTimestamp());
    }

    private sealed record Answer(T Value, bool IsFinal, long Found);
}

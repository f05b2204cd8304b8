namespace KernelTls.Offload;

/// <summary>
/// An answer that is found on first use and kept; one that was found for a passing reason is asked for again, not more often than
/// once in a pause. Thread-safe: the first answer is waited for, and while one thread asks again the others use what is known.
/// </summary>
/// <param name="find">Finds the answer; never throws.</param>
/// <param name="isFinal">Whether an answer is kept for good.</param>
/// <param name="pause">How long an answer that is not final is used.</param>
/// <param name="clock">Measures the pause.</param>
internal sealed class Reconsidered<T>(Func<T> find, Predicate<T> isFinal, TimeSpan pause, TimeProvider clock)
{
    private readonly Lock _lock = new();
    private volatile Answer? _answer;

    /// <summary>Returns whether somebody has asked.</summary>
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

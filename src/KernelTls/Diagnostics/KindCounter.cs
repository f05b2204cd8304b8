using System.Runtime.CompilerServices;

namespace KernelTls.Diagnostics;

/// <summary>Counts values of a process by kind, and reports each kind once. Thread-safe.</summary>
/// <typeparam name="T">The type of the kinds, which are compared by value.</typeparam>
/// <param name="capacity">The number of kinds after which values of others are not counted.</param>
internal sealed class KindCounter<T>(int capacity)
    where T : notnull, IProcessKind
{
    private readonly Lock _lock = new();
    private readonly Dictionary<T, long> _counts = [];
    private readonly List<T> _kinds = [];
    private TaskCompletionSource _added = new(TaskCreationOptions.RunContinuationsAsynchronously);

    /// <summary>Counts a value. The first one of its kind is written to the <see cref="ProcessLog"/>.</summary>
    public void Add(T kind)
    {
        TaskCompletionSource added;
        lock (_lock)
        {
            if (_counts.TryGetValue(kind, out long count))
            {
                _counts[kind] = count + 1;
                return;
            }

            if (_kinds.Count == capacity)
            {
                return;
            }

            _counts.Add(kind, 1);
            _kinds.Add(kind);
            added = _added;
            _added = new(TaskCreationOptions.RunContinuationsAsynchronously);
        }

        added.SetResult();
        ProcessLog.Write(kind);
    }

    /// <summary>Returns the kinds so far, in the order of their first values, with the number of values.</summary>
    public (T Kind, long Count)[] Read()
    {
        lock (_lock)
        {
            return [.. _kinds.Select(k => (k, _counts[k]))];
        }
    }

    /// <summary>Returns the kinds of the past and, as they are added, those of the future. Does not end before it is canceled.</summary>
    public async IAsyncEnumerable<T> WatchAsync([EnumeratorCancellation] CancellationToken cancellationToken)
    {
        for (int next = 0; ;)
        {
            T[] more;
            Task added;
            lock (_lock)
            {
                more = [.. _kinds.Skip(next)];
                added = _added.Task;
            }

            foreach (T kind in more)
            {
                yield return kind;
            }

            next += more.Length;
            await added.WaitAsync(cancellationToken).ConfigureAwait(false);
        }
    }
}

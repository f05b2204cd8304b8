using System.Diagnostics;

namespace KernelTls.Lab.Running;

/// <summary>
/// When a load warms up, counts, and ends; it asks after each operation. A phase lasts as long as it was told to, and until an
/// operation of each kind was done in it: a slow machine measures one, not none.
/// </summary>
internal sealed class Schedule(double warmup, double duration, int kinds = 1)
{
    /// <summary>How long a phase waits for its first operation.</summary>
    private static readonly TimeSpan s_patience = TimeSpan.FromMinutes(2);

    private readonly Kinds _warm = new(kinds);
    private readonly Kinds _counted = new(kinds);
    private volatile Phase _phase = Phase.Warmup;

    private enum Phase
    {
        Warmup,
        Counting,
        Over,
    }

    public bool IsOver => _phase == Phase.Over;

    /// <summary>How long operations have counted; complete when <see cref="RunAsync"/> is.</summary>
    public TimeSpan Counted { get; private set; }

    /// <summary>An operation was done.</summary>
    /// <param name="kind">Of which kind, from 0 on.</param>
    /// <returns>It counts.</returns>
    public bool Note(int kind = 0)
    {
        Phase phase = _phase;
        (phase == Phase.Warmup ? _warm : _counted).Note(kind);
        return phase == Phase.Counting;
    }

    /// <summary>Runs the load, which ends soon after <see cref="IsOver"/>.</summary>
    /// <exception cref="LabFailedException">Nothing was done in a phase.</exception>
    public async Task RunAsync(Func<Task> load, CancellationToken cancellationToken)
    {
        Task running = load();
        try
        {
            await Display.ShowAsync("warming up", warmup, PassAsync(warmup, _warm.Seen, running, cancellationToken));
            long start = Stopwatch.GetTimestamp();
            _phase = Phase.Counting;
            await Display.ShowAsync("measuring", duration, PassAsync(duration, _counted.Seen, running, cancellationToken));
            _phase = Phase.Over;
            Counted = Stopwatch.GetElapsedTime(start);
        }
        finally
        {
            _phase = Phase.Over;
        }

        try
        {
            await running.WaitAsync(s_patience, cancellationToken);
        }
        catch (TimeoutException)
        {
            throw new LabFailedException($"the load did not end in {s_patience.TotalSeconds} s");
        }
    }

    private static async Task PassAsync(double seconds, Task done, Task running, CancellationToken cancellationToken)
    {
        Task passed = Task.WhenAll(Task.Delay(TimeSpan.FromSeconds(seconds), cancellationToken), done);
        try
        {
            Task first = await Task.WhenAny(passed, running).WaitAsync(TimeSpan.FromSeconds(seconds) + s_patience, cancellationToken);
            await first;
        }
        catch (TimeoutException)
        {
            throw new LabFailedException($"nothing was done in {s_patience.TotalSeconds} s");
        }

        if (!passed.IsCompleted)
        {
            throw new LabFailedException("the load ended before its time");
        }
    }

    /// <summary>The kinds of operations that a phase has seen.</summary>
    private sealed class Kinds(int count)
    {
        private readonly TaskCompletionSource _all = new(TaskCreationOptions.RunContinuationsAsynchronously);
        private int _seen;

        /// <summary>Complete once each was there.</summary>
        public Task Seen => _all.Task;

        public void Note(int kind)
        {
            int bit = 1 << kind;
            if ((Volatile.Read(ref _seen) & bit) == 0 && (Interlocked.Or(ref _seen, bit) | bit) == (1 << count) - 1)
            {
                _all.TrySetResult();
            }
        }
    }
}

using System.Diagnostics;

namespace KernelTls.LoadTest.Running;

/// <summary>
/// Determines when a load warms up, counts and ends. The load queries it after each operation. A phase lasts for its
/// configured duration and until one operation of each kind has completed in it. Therefore a slow machine measures at
/// least one operation.
/// </summary>
internal sealed class Schedule(double warmup, double duration, int kinds = 1)
{
    /// <summary>The limit within which the first operation of a phase has to complete.</summary>
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

    /// <summary>
    /// Gets the duration for which operations counted. It is set when <see cref="RunAsync"/> completes.
    /// </summary>
    public TimeSpan Counted { get; private set; }

    /// <summary>Gets the processor time of this process while operations counted. It is set when <see cref="RunAsync"/> completes.</summary>
    public TimeSpan Processor { get; private set; }

    /// <summary>Records a completed operation.</summary>
    /// <param name="kind">The zero-based index of the kind of operation.</param>
    /// <returns><see langword="true"/> if the operation counts.</returns>
    public bool Note(int kind = 0)
    {
        Phase phase = _phase;
        (phase == Phase.Warmup ? _warm : _counted).Note(kind);
        return phase == Phase.Counting;
    }

    /// <summary>Runs the load, which must end soon after <see cref="IsOver"/> is set.</summary>
    /// <exception cref="LoadTestFailedException">No operation completed in a phase.</exception>
    public async Task RunAsync(Func<Task> load, CancellationToken cancellationToken)
    {
        Task running = load();
        try
        {
            await Display.ShowAsync("warming up", warmup, PassAsync(warmup, _warm.Seen, running, cancellationToken));
            TimeSpan processor = Environment.CpuUsage.TotalTime;
            long start = Stopwatch.GetTimestamp();
            _phase = Phase.Counting;
            await Display.ShowAsync("measuring", duration, PassAsync(duration, _counted.Seen, running, cancellationToken));
            _phase = Phase.Over;
            Counted = Stopwatch.GetElapsedTime(start);
            Processor = Environment.CpuUsage.TotalTime - processor;
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
            throw new LoadTestFailedException($"the load did not end in {s_patience.TotalSeconds} s");
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
            throw new LoadTestFailedException($"nothing was done in {s_patience.TotalSeconds} s");
        }

        if (!passed.IsCompleted)
        {
            throw new LoadTestFailedException("the load ended before its time");
        }
    }

    /// <summary>Records the kinds of operations that completed in a phase.</summary>
    private sealed class Kinds(int count)
    {
        private readonly TaskCompletionSource _all = new(TaskCreationOptions.RunContinuationsAsynchronously);
        private int _seen;

        /// <summary>Gets a task that completes when each kind has occurred.</summary>
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

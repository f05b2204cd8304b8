using System.Diagnostics;

namespace KernelTls.Lab.Running;

/// <summary>
/// When a load warms up, counts, and ends; it asks after each operation. A phase lasts as long as it was told to, and until an
/// operation was done in it: a slow machine measures one, not none.
/// </summary>
internal sealed class Schedule(double warmup, double duration)
{
    /// <summary>How long a phase waits for its first operation.</summary>
    private static readonly TimeSpan s_patience = TimeSpan.FromMinutes(2);

    private readonly TaskCompletionSource _warm = new(TaskCreationOptions.RunContinuationsAsynchronously);
    private readonly TaskCompletionSource _counted = new(TaskCreationOptions.RunContinuationsAsynchronously);
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
    /// <returns>It counts.</returns>
    public bool Note()
    {
        Phase phase = _phase;
        (phase == Phase.Warmup ? _warm : _counted).TrySetResult();
        return phase == Phase.Counting;
    }

    /// <summary>Runs the load, which ends soon after <see cref="IsOver"/>.</summary>
    /// <exception cref="LabFailedException">Nothing was done in a phase.</exception>
    public async Task RunAsync(Func<Task> load, CancellationToken cancellationToken)
    {
        Task running = load();
        try
        {
            await Display.ShowAsync("warming up", warmup, PassAsync(warmup, _warm.Task, running, cancellationToken));
            long start = Stopwatch.GetTimestamp();
            _phase = Phase.Counting;
            await Display.ShowAsync("measuring", duration, PassAsync(duration, _counted.Task, running, cancellationToken));
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
}

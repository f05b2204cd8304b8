using System.Diagnostics;

namespace KernelTls.Bench.Scenarios;

/// <summary>One operation, repeated, over loopback.</summary>
internal abstract class Scenario : IAsyncDisposable
{
    /// <summary>Operations of one round: enough to level out what happens once in a while, few enough to stay short.</summary>
    public abstract int OperationsPerRound { get; }

    /// <summary>Rounds before the hot methods have been compiled for good; more are run until the figures settle.</summary>
    public virtual int WarmUpRounds => 5;

    /// <summary>Whose instructions count: this process's, in which both ends are, or a server's alone.</summary>
    public virtual int MeasuredProcess => Environment.ProcessId;

    /// <summary>What each operation took, where somebody keeps it; null while instructions are counted.</summary>
    public List<TimeSpan>? Times { get; set; }

    /// <summary>Brings about what is not measured.</summary>
    public abstract Task PrepareAsync();

    public abstract Task RunAsync(int operations);

    /// <summary>Throws unless what ran was what was to be measured. Called after each round.</summary>
    public virtual void Verify()
    {
    }

    public abstract ValueTask DisposeAsync();

    /// <summary>An operation ends, and the next one begins.</summary>
    protected void KeepTime(ref long begun)
    {
        if (Times is { } times)
        {
            long now = Stopwatch.GetTimestamp();
            times.Add(Stopwatch.GetElapsedTime(begun, now));
            begun = now;
        }
    }
}

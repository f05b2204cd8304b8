using System.Diagnostics;

namespace KernelTls.Bench.Scenarios;

/// <summary>Represents one operation that is repeated over loopback.</summary>
internal abstract class Scenario : IAsyncDisposable
{
    /// <summary>
    /// Gets the number of operations of one round. It is large enough to average out occasional events and small enough
    /// to keep the round short.
    /// </summary>
    public abstract int OperationsPerRound { get; }

    /// <summary>
    /// Gets the number of rounds after which the runtime has fully optimized the hot methods. More rounds run until the
    /// figures settle.
    /// </summary>
    public virtual int WarmUpRounds => 5;

    /// <summary>
    /// Gets the number of rounds of which a figure is the mean: several if collecting garbage is a noticeable part of a
    /// round and not every round does it.
    /// </summary>
    public virtual int RoundsPerFigure => 1;

    /// <summary>
    /// Gets the process whose instructions are counted: this process, which contains both ends, or only a server.
    /// </summary>
    public virtual int MeasuredProcess => Environment.ProcessId;

    /// <summary>Gets the number of operations in progress at any time.</summary>
    public virtual int Concurrency => 1;

    /// <summary>
    /// Gets the TCP port of the server whose connections carry the operations, or null if it is not known.
    /// </summary>
    public virtual int? Port => null;

    /// <summary>
    /// Gets the fraction of the last round's handshakes that resumed a session, or null if there were none or they are
    /// not counted.
    /// </summary>
    public virtual double? Resumed => null;

    /// <summary>
    /// Gets or sets the list that receives the duration of each operation, or null while instructions are counted.
    /// </summary>
    public List<TimeSpan>? Times { get; set; }

    /// <summary>Performs the work that is not measured.</summary>
    public abstract Task PrepareAsync();

    public abstract Task RunAsync(int operations);

    /// <summary>Throws unless the round measured the intended operations. The method is called after each round.</summary>
    public virtual void Verify()
    {
    }

    public abstract ValueTask DisposeAsync();

    /// <summary>Records the duration of an operation. The next operation begins at the same time.</summary>
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

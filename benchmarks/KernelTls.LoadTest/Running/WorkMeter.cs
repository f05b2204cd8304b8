using KernelTls.LoadTest.Report;

namespace KernelTls.LoadTest.Running;

/// <summary>
/// Measures the processor time of a server per operation and per byte, in the second half of a run: the first half compiles
/// code. This class is thread-safe.
/// </summary>
internal sealed class WorkMeter
{
    private readonly Lock _lock = new();
    private readonly List<Sample> _samples = [];
    private long _operations;
    private long _bytes;
    private int _run;

    /// <summary>Records a completed operation.</summary>
    /// <param name="bytes">The bytes of content, of both directions.</param>
    public void NoteOperation(long bytes)
    {
        Interlocked.Increment(ref _operations);
        NoteBytes(bytes);
    }

    /// <summary>Records bytes of content that belong to no operation.</summary>
    public void NoteBytes(long bytes) => Interlocked.Add(ref _bytes, bytes);

    /// <summary>Takes a sample, unless nothing was done since the last one. It is called at regular intervals.</summary>
    /// <param name="run">The number of the run. Another number than before begins a new run.</param>
    public void Look(int run) => Look(run, new Sample(Environment.CpuUsage.TotalTime, Interlocked.Read(ref _operations), Interlocked.Read(ref _bytes)));

    public void AddTo(Results results)
    {
        Sample first;
        Sample last;
        lock (_lock)
        {
            if (_samples.Count < 2)
            {
                return;
            }

            (first, last) = (_samples[_samples.Count / 2 - 1], _samples[^1]);
        }

        Add(results, last.Processor - first.Processor, last.Operations - first.Operations, last.Bytes - first.Bytes);
    }

    /// <summary>Adds the figures of a processor time. A count of zero has no figure.</summary>
    public static void Add(Results results, TimeSpan processor, long operations, long bytes)
    {
        if (operations > 0)
        {
            results.Add(Metrics.ProcessorPerRequest, processor.TotalMicroseconds / operations);
        }

        if (bytes > 0)
        {
            results.Add(Metrics.ProcessorPerGigabyte, processor.TotalSeconds / (bytes / 1e9));
        }
    }

    internal void Look(int run, Sample sample)
    {
        lock (_lock)
        {
            if (run != _run)
            {
                _run = run;
                _samples.Clear();
            }

            if (_samples.Count == 0 || _samples[^1].Operations != sample.Operations || _samples[^1].Bytes != sample.Bytes)
            {
                _samples.Add(sample);
            }
        }
    }

    /// <summary>Represents what was done, and the processor time used, since the process began.</summary>
    internal readonly record struct Sample(TimeSpan Processor, long Operations, long Bytes);
}

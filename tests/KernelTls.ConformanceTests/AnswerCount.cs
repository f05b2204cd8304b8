using System.Diagnostics.Metrics;

namespace KernelTls.ConformanceTests;

/// <summary>
/// Counts the KeyUpdates with which connections of this process answer their peers, by the library's meter.
/// </summary>
internal sealed class AnswerCount : IDisposable
{
    private readonly MeterListener _listener = new();
    private int _count;

    public AnswerCount()
    {
        _listener.InstrumentPublished = (instrument, listener) =>
        {
            if (instrument.Name == "kernel_tls.key_updates")
            {
                listener.EnableMeasurementEvents(instrument);
            }
        };
        _listener.SetMeasurementEventCallback<long>((_, _, tags, _) =>
        {
            foreach (KeyValuePair<string, object?> tag in tags)
            {
                if (tag is { Key: "kernel_tls.cause", Value: "peer" })
                {
                    Interlocked.Increment(ref _count);
                }
            }
        });
        _listener.Start();
    }

    public int Count => Volatile.Read(ref _count);

    public void Dispose() => _listener.Dispose();
}

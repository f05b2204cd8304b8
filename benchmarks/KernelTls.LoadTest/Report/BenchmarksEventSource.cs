using System.Collections.Concurrent;
using System.Diagnostics.Tracing;

namespace KernelTls.LoadTest.Report;

/// <summary>
/// Represents the event source that crank's agent reads through EventPipe. The agent defines its name and the names,
/// IDs and parameters of its events. The agent counts a measurement only if it received the metadata in the same
/// session.
/// </summary>
[EventSource(Name = "Benchmarks")]
internal sealed class BenchmarksEventSource : EventSource
{
    private readonly ConcurrentDictionary<string, bool> _told = new();

    public static BenchmarksEventSource Log { get; } = new();

    [NonEvent]
    public void Measure(Metric metric, object value)
    {
        if (_told.TryAdd(metric.Name, true))
        {
            Metadata(
                metric.Name, $"{metric.Aggregate}", $"{metric.Reduce}", metric.ShortDescription, metric.LongDescription, metric.Format);
        }

        switch (value)
        {
            case long number: MeasureLong(metric.Name, number); break;
            case double number: MeasureDouble(metric.Name, number); break;
            default: MeasureString(metric.Name, (string)value); break;
        }
    }

    /// <summary>
    /// Sends the metadata again after a listener enables the source, because a new listener has not received it.
    /// </summary>
    protected override void OnEventCommand(EventCommandEventArgs command)
    {
        if (command.Command == EventCommand.Enable)
        {
            _told.Clear();
        }
    }

    [Event(1, Level = EventLevel.Informational)]
    private void MeasureLong(string name, long value) => WriteEvent(1, name, value);

    [Event(2, Level = EventLevel.Informational)]
    private void MeasureDouble(string name, double value) => WriteEvent(2, name, value);

    [Event(3, Level = EventLevel.Informational)]
    private void MeasureString(string name, string value) => WriteEvent(3, name, value);

    [Event(5, Level = EventLevel.Informational)]
    private void Metadata(
        string name, string aggregate, string reduce, string shortDescription, string longDescription, string format) =>
        WriteEvent(5, name, aggregate, reduce, shortDescription, longDescription, format);
}

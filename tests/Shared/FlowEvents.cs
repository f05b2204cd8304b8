using System.Diagnostics.Tracing;

namespace KernelTls.Tests;

/// <summary>
/// Collects events of one name by the asynchronous flow in which they occur: warnings of the library, or events of
/// another source.
/// </summary>
internal sealed class FlowEvents(
    string name, Func<EventWrittenEventArgs, string> describe, string source = "KernelTls", EventLevel level = EventLevel.Warning)
    : EventListener
{
    private readonly AsyncLocal<List<string>?> _current = new();

    /// <summary>Collects the events in the calling method and its callees.</summary>
    public List<string> Collect()
    {
        List<string> reported = [];
        _current.Value = reported;
        return reported;
    }

    protected override void OnEventSourceCreated(EventSource eventSource)
    {
        if (eventSource.Name == source)
        {
            EnableEvents(eventSource, level);
        }
    }

    protected override void OnEventWritten(EventWrittenEventArgs eventData)
    {
        if (eventData.EventName == name && _current.Value is { } reported)
        {
            lock (reported)
            {
                reported.Add(describe(eventData));
            }
        }
    }
}

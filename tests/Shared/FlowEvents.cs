using System.Diagnostics.Tracing;

namespace KernelTls.Tests;

/// <summary>
/// Events of one name that the library reports as warnings, or another source at all, told apart by the asynchronous flow they
/// happen in.
/// </summary>
internal sealed class FlowEvents(
    string name, Func<EventWrittenEventArgs, string> describe, string source = "KernelTls", EventLevel level = EventLevel.Warning)
    : EventListener
{
    private readonly AsyncLocal<List<string>?> _current = new();

    /// <summary>Collects what is reported in the calling method and in what it calls.</summary>
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

using System.Diagnostics.Tracing;

namespace KernelTls.Tests;

/// <summary>The socket options that were refused, told apart by the asynchronous flow they were set in.</summary>
internal sealed class Refusals : EventListener
{
    private static readonly AsyncLocal<List<string>?> s_current = new();
    private static readonly Refusals s_listener = new();

    /// <summary>Collects, as "option error", what is refused in the calling method and in what it calls.</summary>
    public static List<string> Collect()
    {
        GC.KeepAlive(s_listener);
        List<string> refused = [];
        s_current.Value = refused;
        return refused;
    }

    protected override void OnEventSourceCreated(EventSource eventSource)
    {
        if (eventSource.Name == "KernelTls")
        {
            EnableEvents(eventSource, EventLevel.Warning);
        }
    }

    protected override void OnEventWritten(EventWrittenEventArgs eventData)
    {
        if (eventData.EventName == "SocketOptionRefused" && s_current.Value is { } refused)
        {
            lock (refused)
            {
                refused.Add($"{eventData.Payload![1]} {eventData.Payload[2]}");
            }
        }
    }
}

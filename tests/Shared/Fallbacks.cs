using System.Diagnostics.Tracing;

namespace KernelTls.Tests;

/// <summary>
/// The fallbacks that the library reports, told apart by the asynchronous flow they happen in: a handshake that failed has no
/// Offload to ask.
/// </summary>
internal sealed class Fallbacks : EventListener
{
    private static readonly AsyncLocal<List<string>?> s_current = new();
    private static readonly Fallbacks s_listener = new();

    /// <summary>Collects the reasons of fallbacks in the calling method and in what it calls.</summary>
    public static List<string> Collect()
    {
        GC.KeepAlive(s_listener);
        List<string> reasons = [];
        s_current.Value = reasons;
        return reasons;
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
        if (eventData.EventName == "Fallback" && s_current.Value is { } reasons)
        {
            lock (reasons)
            {
                reasons.Add($"{eventData.Payload![1]}");
            }
        }
    }
}

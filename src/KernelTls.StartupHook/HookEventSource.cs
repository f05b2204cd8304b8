using System.Diagnostics.Tracing;

/// <summary>Writes the event of a hook that failed. Where it does not fail, nothing creates the source.</summary>
[EventSource(Name = "KernelTls.StartupHook")]
internal sealed class HookEventSource : EventSource
{
    public static readonly HookEventSource Log = new();

    private HookEventSource()
    {
    }

    /// <summary>Reports that the hook failed, and that the process uses the stock TLS.</summary>
    [Event(1, Level = EventLevel.Warning, Message = "The process uses the stock TLS: {0}")]
    public void NotReached(string reason) => WriteEvent(1, reason);
}

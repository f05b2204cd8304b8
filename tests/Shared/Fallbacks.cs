namespace KernelTls.Tests;

/// <summary>Collects the fallbacks that the library reports. A failed handshake has no Offload to read.</summary>
internal static class Fallbacks
{
    private static readonly FlowEvents s_events = new("Fallback", e => $"{e.Payload![1]}");

    /// <summary>Collects the reasons of fallbacks in the calling method and its callees.</summary>
    public static List<string> Collect() => s_events.Collect();
}

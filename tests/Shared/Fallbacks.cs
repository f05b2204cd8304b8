namespace KernelTls.Tests;

/// <summary>The fallbacks that the library reports: a handshake that failed has no Offload to ask.</summary>
internal static class Fallbacks
{
    private static readonly FlowEvents s_events = new("Fallback", e => $"{e.Payload![1]}");

    /// <summary>Collects the reasons of fallbacks in the calling method and in what it calls.</summary>
    public static List<string> Collect() => s_events.Collect();
}

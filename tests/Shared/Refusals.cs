namespace KernelTls.Tests;

/// <summary>Collects the socket options that were refused.</summary>
internal static class Refusals
{
    private static readonly FlowEvents s_events = new("SocketOptionRefused", e => $"{e.Payload![1]} {e.Payload[2]}");

    /// <summary>Collects refusals, as "option error", in the calling method and its callees.</summary>
    public static List<string> Collect() => s_events.Collect();
}

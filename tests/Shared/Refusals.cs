namespace KernelTls.Tests;

/// <summary>The socket options that were refused.</summary>
internal static class Refusals
{
    private static readonly FlowEvents s_events = new("SocketOptionRefused", e => $"{e.Payload![1]} {e.Payload[2]}");

    /// <summary>Collects, as "option error", what is refused in the calling method and in what it calls.</summary>
    public static List<string> Collect() => s_events.Collect();
}

using KernelTls.Offload;

namespace KernelTls.Diagnostics;

/// <summary>
/// Collects what of this process uses kernel TLS, what does not, and why: for <c>ktls info --process</c>, the log of ASP.NET Core and the
/// <see cref="ProcessLog"/>. Thread-safe.
/// </summary>
/// <remarks>A handshake costs a lock and a look-up. Kinds are few: a library has one or two.</remarks>
internal static class ProcessStatus
{
    private const int Capacity = 32;

    /// <summary>Gets the connections on OpenSSL.</summary>
    public static KindCounter<ConnectionKind> Connections { get; } = new(Capacity);

    /// <summary>Gets the connections that the base class serves although kernel TLS was requested.</summary>
    public static KindCounter<FallbackKind> Fallbacks { get; } = new(Capacity);

    /// <summary>Gets the handshakes of streams that are not this library's. One of many of a kind is counted.</summary>
    public static KindCounter<StockHandshake> StockHandshakes { get; } = new(Capacity);

    /// <summary>Gets the https endpoints of Kestrel.</summary>
    public static KindCounter<EndpointKind> Endpoints { get; } = new(Capacity);

    /// <summary>Returns all of it, with the number of connections of each kind, or 0 where there is none.</summary>
    public static IEnumerable<(StatusEntry Entry, long Count)> Read()
    {
        yield return (Switch(Toggles.KernelVariable, Toggles.Kernel, Toggles.KernelSource), 0);
        yield return (Switch(Toggles.DirectVariable, Toggles.DirectOpenSsl, Toggles.DirectSource), 0);
        yield return (Platform.Known is { } platform
            ? new StatusEntry(
                "platform",
                "",
                platform.KernelReason == KtlsFallbackReason.None ? "kernel TLS is available" : $"{platform.KernelReason}",
                platform.KernelReason == KtlsFallbackReason.None ? "" : $"{Advice.On(platform.KernelReason)} {platform.Detail}".TrimEnd())
            : new StatusEntry("platform", "", "not tried yet", "The first handshake tries it."), 0);
        foreach ((EndpointKind kind, _) in Endpoints.Read())
        {
            yield return (kind.Describe(), 0);
        }

        foreach ((ConnectionKind kind, long count) in Connections.Read())
        {
            yield return (kind.Describe(), count);
        }

        foreach ((FallbackKind kind, long count) in Fallbacks.Read())
        {
            yield return (kind.Describe(), count);
        }

        foreach ((StockHandshake kind, _) in StockHandshakes.Read())
        {
            yield return (kind.Describe(), 0);
        }
    }

    private static StatusEntry Switch(string name, Toggle toggle, string source) => new(
        "switch", name, $"{toggle}", toggle == Toggle.Invalid ? Toggles.InvalidDetail : source);
}

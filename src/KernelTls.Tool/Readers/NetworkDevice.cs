namespace KernelTls.Tool.Readers;

/// <summary>What a network device says about TLS.</summary>
/// <param name="Name">The device.</param>
/// <param name="Features">Its features that are about TLS, such as <c>tls-hw-tx-offload</c>.</param>
/// <param name="Statistics">Its statistics that are about TLS, by the driver's names.</param>
/// <param name="Error">Why the device could not be asked; else <see langword="null"/>.</param>
internal sealed record NetworkDevice(
    string Name,
    IReadOnlyList<NetworkDevice.Feature> Features,
    IReadOnlyDictionary<string, ulong> Statistics,
    string? Error)
{
    /// <summary>One offload feature, as <c>ethtool -k</c> shows it.</summary>
    /// <param name="Name">The kernel's name.</param>
    /// <param name="Available">The device has it and lets it be switched.</param>
    /// <param name="Active">It is on.</param>
    /// <param name="Fixed">It cannot be switched.</param>
    internal sealed record Feature(string Name, bool Available, bool Active, bool Fixed);

    /// <summary>Every device of this network namespace, asked by <see cref="Ethtool"/>.</summary>
    public static IReadOnlyList<NetworkDevice> ReadAll()
    {
        const string Devices = "/sys/class/net";
        if (!Directory.Exists(Devices))
        {
            return [];
        }

        using Ethtool ethtool = new();
        return [.. Directory.EnumerateDirectories(Devices).Select(d => Path.GetFileName(d)).Order(StringComparer.Ordinal).Select(ethtool.Read)];
    }
}

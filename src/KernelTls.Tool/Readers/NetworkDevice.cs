namespace KernelTls.Tool.Readers;

/// <summary>Describes the TLS support of a network device.</summary>
/// <param name="Name">The name of the device.</param>
/// <param name="Features">Its TLS features, such as <c>tls-hw-tx-offload</c>.</param>
/// <param name="Statistics">Its TLS statistics, by the driver's names.</param>
/// <param name="Error">The reason why the device could not be queried, or <see langword="null"/>.</param>
internal sealed record NetworkDevice(
    string Name,
    IReadOnlyList<NetworkDevice.Feature> Features,
    IReadOnlyDictionary<string, ulong> Statistics,
    string? Error)
{
    /// <summary>Describes one offload feature, as shown by <c>ethtool -k</c>.</summary>
    /// <param name="Name">The kernel's name.</param>
    /// <param name="Available">Whether the device supports the feature and allows changing it.</param>
    /// <param name="Active">Whether it is on.</param>
    /// <param name="Fixed">Whether it cannot be changed.</param>
    internal sealed record Feature(string Name, bool Available, bool Active, bool Fixed);

    /// <summary>Returns all devices of this network namespace, queried by <see cref="Ethtool"/>.</summary>
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

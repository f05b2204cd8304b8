using System.Globalization;

namespace KernelTls.FileServer;

/// <summary>The kernel's own counters of TLS sockets, of this network namespace.</summary>
internal static class KernelCounters
{
    private const string Path = "/proc/net/tls_stat";

    /// <summary>Empty where the kernel has no TLS.</summary>
    public static Dictionary<string, long> Read() => !File.Exists(Path)
        ? []
        : File.ReadLines(Path)
            .Select(line => line.Split((char[]?)null, StringSplitOptions.RemoveEmptyEntries))
            .ToDictionary(fields => fields[0], fields => long.Parse(fields[1], CultureInfo.InvariantCulture));
}

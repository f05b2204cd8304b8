using System.Globalization;

namespace KernelTls;

/// <summary>
/// The kernel's own counters of TLS sockets (/proc/net/tls_stat, Documentation/networking/tls.rst), of a network namespace:
/// every process's sockets are in them.
/// </summary>
internal static class TlsStat
{
    /// <summary>Of the network namespace that the process is in.</summary>
    public const string Path = "/proc/net/tls_stat";

    /// <summary>By the kernel's names; <see langword="null"/> where the tls module is not there.</summary>
    public static SortedDictionary<string, long>? Read(string path = Path)
    {
        string[] lines;
        try
        {
            lines = File.ReadAllLines(path);
        }
        catch (Exception e) when (e is IOException or UnauthorizedAccessException)
        {
            return null;
        }

        SortedDictionary<string, long> counters = new(StringComparer.Ordinal);
        foreach (string line in lines)
        {
            string[] fields = line.Split((char[]?)null, StringSplitOptions.RemoveEmptyEntries);
            if (fields.Length == 2 && long.TryParse(fields[1], CultureInfo.InvariantCulture, out long value))
            {
                counters[fields[0]] = value;
            }
        }

        return counters;
    }
}

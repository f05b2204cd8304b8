using System.Globalization;

namespace KernelTls;

/// <summary>
/// Reads the kernel's counters of TLS sockets (/proc/net/tls_stat, Documentation/networking/tls.rst). They count the
/// sockets of all processes in a network namespace.
/// </summary>
internal static class TlsStat
{
    /// <summary>The counters of the process's network namespace.</summary>
    public const string Path = "/proc/net/tls_stat";

    /// <summary>
    /// Returns the counters by the kernel's names, or <see langword="null"/> if the tls module is not loaded.
    /// </summary>
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

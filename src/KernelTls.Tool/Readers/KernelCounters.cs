using System.Globalization;

namespace KernelTls.Tool.Readers;

/// <summary>
/// The kernel's own counters of TLS sockets (/proc/net/tls_stat, Documentation/networking/tls.rst), of this network namespace:
/// every process's sockets are in them.
/// </summary>
internal static class KernelCounters
{
    public const string Path = "/proc/net/tls_stat";

    /// <summary>By the kernel's names; <see langword="null"/> where the tls module is not there.</summary>
    public static SortedDictionary<string, long>? Read()
    {
        string[] lines;
        try
        {
            lines = File.ReadAllLines(Path);
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

    /// <summary>As <see cref="Read"/>, to compare with later: the trial by which this process finds out what it can do is in it.</summary>
    public static SortedDictionary<string, long>? ReadFirst()
    {
        _ = KtlsPlatform.IsSupported;
        return Read();
    }

    /// <summary>What rose or fell between two readings.</summary>
    public static SortedDictionary<string, long> Changes(
        IReadOnlyDictionary<string, long>? before, IReadOnlyDictionary<string, long>? after)
    {
        SortedDictionary<string, long> changes = new(StringComparer.Ordinal);
        foreach ((string name, long value) in after ?? new Dictionary<string, long>())
        {
            long change = value - (before?.GetValueOrDefault(name) ?? 0);
            if (change != 0)
            {
                changes[name] = change;
            }
        }

        return changes;
    }

    /// <summary>One line of text, such as <c>TlsRxSw +1 TlsTxSw +1</c>.</summary>
    public static string Describe(IReadOnlyDictionary<string, long> changes) => changes.Count == 0
        ? "none"
        : string.Join(' ', changes.Select(c => string.Create(CultureInfo.InvariantCulture, $"{c.Key} {c.Value:+0;-0}")));
}

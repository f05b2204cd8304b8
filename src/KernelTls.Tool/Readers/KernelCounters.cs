using System.Globalization;

namespace KernelTls.Tool.Readers;

/// <summary>Compares readings of the kernel's counters of TLS sockets.</summary>
internal static class KernelCounters
{
    /// <summary>
    /// Reads the counters, as <see cref="TlsStat.Read"/>, for a later comparison. The connections of this process's own
    /// probe are included.
    /// </summary>
    public static SortedDictionary<string, long>? ReadFirst()
    {
        _ = KtlsPlatform.Probe();
        return TlsStat.Read();
    }

    /// <summary>Returns the differences between two readings.</summary>
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

    /// <summary>Returns one line of text, such as <c>TlsRxSw +1 TlsTxSw +1</c>.</summary>
    public static string Describe(IReadOnlyDictionary<string, long> changes) => changes.Count == 0
        ? "none"
        : string.Join(' ', changes.Select(c => string.Create(CultureInfo.InvariantCulture, $"{c.Key} {c.Value:+0;-0}")));
}

using System.Globalization;

namespace KernelTls.Tool.Readers;

/// <summary>The kernel's own counters of TLS sockets, before and after.</summary>
internal static class KernelCounters
{
    /// <summary>As <see cref="TlsStat.Read"/>, to compare with later: the trial by which this process finds out what it can do is in it.</summary>
    public static SortedDictionary<string, long>? ReadFirst()
    {
        _ = KtlsPlatform.IsSupported;
        return TlsStat.Read();
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

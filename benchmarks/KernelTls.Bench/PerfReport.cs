using System.Globalization;

namespace KernelTls.Bench;

/// <summary>Adds up a report of perf in which each thread has entries of its own.</summary>
/// <remarks>
/// Without the thread among its keys, perf adds the samples of all processes to one entry, and hides the entry from a
/// report of one process if its first sample is of another one. The kernel as a whole can thus be missing.
/// </remarks>
internal static class PerfReport
{
    public const string Separator = "\t";

    /// <summary>
    /// Returns a line for each entry of at least <paramref name="leastPercent"/>, the largest first. An entry has
    /// <paramref name="percentages"/> columns, then the thread, then <paramref name="keys"/> columns.
    /// </summary>
    /// <remarks>
    /// Omits functions without a name: Debian's libraries do not name most of their functions. A report by image includes
    /// them.
    /// </remarks>
    public static IEnumerable<string> OfAllThreads(string report, int percentages, int keys, double leastPercent) =>
        from line in report.Split('\n')
        let columns = line.Split(Separator)
        where columns.Length > percentages + keys && !line.Contains("0x0000", StringComparison.Ordinal)
        group columns by string.Join("  ", columns.Skip(percentages + 1).Take(keys).Select(c => c.Trim())) into entry
        let sums = Enumerable.Range(0, percentages).Select(i => entry.Sum(columns => Percent(columns[i]))).ToArray()
        where sums[0] >= leastPercent
        orderby sums[0] descending
        select $"{string.Concat(sums.Select(sum => string.Create(CultureInfo.InvariantCulture, $"{sum,9:0.00}%")))}  {entry.Key}";

    private static double Percent(string column) => double.Parse(column.AsSpan().Trim().TrimEnd('%'), CultureInfo.InvariantCulture);
}

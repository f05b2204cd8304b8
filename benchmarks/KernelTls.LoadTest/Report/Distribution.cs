using System.Diagnostics;

namespace KernelTls.LoadTest.Report;

/// <summary>Describes the durations of many operations in milliseconds by the six figures that crank shows.</summary>
internal sealed class Distribution
{
    private static readonly (string Name, double Share)[] s_points =
        [("min", 0), ("p50", 0.50), ("p75", 0.75), ("p90", 0.90), ("p99", 0.99), ("max", 1)];

    public Distribution(string name, string description)
    {
        Metrics = [.. s_points.Select(point => new Metric(
            $"{name}/{point.Name}",
            point.Share == 0 ? Operation.Min : Operation.Max,
            point.Share == 0 ? Operation.Min : Operation.Max,
            $"{description} (ms) - {point.Name}",
            $"{description}, {point.Name}",
            "n3"))];
    }

    /// <summary>Gets the share of the operations that each figure describes.</summary>
    public static IEnumerable<double> Shares => s_points.Select(point => point.Share);

    public IReadOnlyList<Metric> Metrics { get; }

    /// <summary>Adds six figures in milliseconds that another program has computed.</summary>
    public void Add(Results results, IReadOnlyList<double> milliseconds)
    {
        for (int i = 0; i < s_points.Length; i++)
        {
            results.Add(Metrics[i], milliseconds[i]);
        }
    }

    /// <param name="results">The results to which the six figures are added.</param>
    /// <param name="ticks">
    /// The durations in ticks of <see cref="Stopwatch"/>. There must be at least one. The list is sorted in place.
    /// </param>
    public void Add(Results results, List<long> ticks)
    {
        ticks.Sort();
        for (int i = 0; i < s_points.Length; i++)
        {
            results.Add(Metrics[i], At(ticks, s_points[i].Share) * 1000 / Stopwatch.Frequency);
        }
    }

    /// <summary>
    /// Returns the value below which the given fraction of the values lies, interpolated between its two neighbors.
    /// </summary>
    internal static double At(List<long> sorted, double share)
    {
        double rank = share * (sorted.Count - 1);
        int below = (int)rank;
        int above = Math.Min(below + 1, sorted.Count - 1);
        return sorted[below] + ((rank - below) * (sorted[above] - sorted[below]));
    }
}

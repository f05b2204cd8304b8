namespace KernelTls.Bench.Report;

/// <summary>Calculates percentiles of times.</summary>
internal static class Percentiles
{
    /// <summary>Returns the smallest time that is not less than the given fraction of all times.</summary>
    /// <param name="sorted">The times in ascending order. There must be at least one.</param>
    /// <param name="part">The fraction, greater than 0 and at most 1.</param>
    public static TimeSpan Of(IReadOnlyList<TimeSpan> sorted, double part) => sorted[(int)Math.Ceiling(part * sorted.Count) - 1];
}

namespace KernelTls.Bench.Wall;

/// <summary>
/// Represents the range in which the median of a ratio lies with at least 95 % probability, whatever its distribution: between two ordered
/// values of the sample, found as for the sign test.
/// </summary>
/// <param name="Low">The lower end.</param>
/// <param name="High">The upper end.</param>
internal readonly record struct MedianInterval(double Low, double High)
{
    /// <summary>The smallest number of values for which such a range exists.</summary>
    public const int LeastValues = 6;

    private const double MostError = 0.05;

    /// <summary>The width up to which a range counts as narrow.</summary>
    private const double Narrow = 0.02;

    public bool IsNarrow => High - Low <= Narrow;

    /// <param name="values">At least <see cref="LeastValues"/> values.</param>
    public static MedianInterval Of(IEnumerable<double> values)
    {
        double[] sorted = [.. values.Order()];
        ArgumentOutOfRangeException.ThrowIfLessThan(sorted.Length, LeastValues, nameof(values));

        // Of n values, k or fewer lie below the median with the probability of k or fewer heads in n tosses.
        int outside = 0;
        double term = Math.Pow(0.5, sorted.Length);
        double tail = term;
        while (2 * tail <= MostError)
        {
            outside++;
            term *= (double)(sorted.Length - outside + 1) / outside;
            tail += term;
        }

        return new MedianInterval(Math.Round(sorted[outside - 1], 3), Math.Round(sorted[^outside], 3));
    }

    /// <summary>Returns whether the whole range lies on one side of a limit.</summary>
    public bool IsClearOf(double limit) => Low >= limit || High < limit;

    public override string ToString() => Report.TextTable.Text($"{Low:F3}–{High:F3}");
}

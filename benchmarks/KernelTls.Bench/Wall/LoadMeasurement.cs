namespace KernelTls.Bench.Wall;

/// <summary>
/// Represents the wall-clock figures of one row of load in one mode: medians of pairs with the stock stream.
/// </summary>
/// <param name="Scenario">The name of the row.</param>
/// <param name="Mode">The name of the mode.</param>
/// <param name="PerSecond">The number of operations per second.</param>
/// <param name="StockPerSecond">The number of operations per second of the stock stream.</param>
/// <param name="RateRatio">The median ratio of the two rates of each pair. A larger ratio is better.</param>
/// <param name="Mean">The mean duration of an operation, in microseconds.</param>
/// <param name="Median">The median duration of an operation, in microseconds.</param>
/// <param name="Percentile99">The 99th percentile of the duration of an operation, in microseconds.</param>
/// <param name="Percentile99Ratio">
/// The median ratio of the 99th percentile to that of the stock stream in each pair. A smaller ratio is better.
/// </param>
/// <param name="CpuPerOp">
/// The processor time per operation, in microseconds: of both ends, or of the server alone if a load generator is the client.
/// </param>
/// <param name="CpuRatio">The median ratio of the processor time to that of the stock stream in each pair. A smaller ratio is better.</param>
/// <param name="Contentions">
/// The number of times that a thread waited for a managed lock, per thousand operations, or null if a load generator is the client.
/// </param>
/// <param name="StockContentions">The value of <paramref name="Contentions"/> for the stock stream.</param>
/// <param name="RateRatios">The ratio of the rates of each pair, in the order of measurement.</param>
internal sealed record LoadMeasurement(
    string Scenario,
    string Mode,
    double PerSecond,
    double StockPerSecond,
    double RateRatio,
    double Mean,
    double Median,
    double Percentile99,
    double Percentile99Ratio,
    double CpuPerOp,
    double CpuRatio,
    double? Contentions,
    double? StockContentions,
    IReadOnlyList<double> RateRatios)
{
    /// <summary>Gets the number of turns of the row that failed and were measured again.</summary>
    public int Failures { get; init; }

    /// <summary>Gets the range of the median ratio of the rates, or null if there are too few pairs.</summary>
    public MedianInterval? RateRange { get; init; }

    /// <summary>Gets the range of the median ratio of the processor times, or null if there are too few pairs.</summary>
    public MedianInterval? CpuRange { get; init; }

    public static LoadMeasurement Of(IReadOnlyList<LoadPair> pairs) => new(
        pairs[0].Measured.Scenario,
        pairs[0].Measured.Mode,
        MedianOf(pairs, pair => pair.Measured.PerSecond, digits: 1),
        MedianOf(pairs, pair => pair.Stock.PerSecond, digits: 1),
        MedianOf(pairs, RatioOf, digits: 3),
        MedianOf(pairs, pair => pair.Measured.Mean, digits: 1),
        MedianOf(pairs, pair => pair.Measured.Median, digits: 1),
        MedianOf(pairs, pair => pair.Measured.Percentile99, digits: 1),
        MedianOf(pairs, pair => pair.Measured.Percentile99 / pair.Stock.Percentile99, digits: 3),
        MedianOf(pairs, pair => pair.Measured.CpuPerOp, digits: 1),
        MedianOf(pairs, CpuRatioOf, digits: 3),
        ContentionsOf(pairs.Select(pair => pair.Measured)),
        ContentionsOf(pairs.Select(pair => pair.Stock)),
        [.. pairs.Select(pair => Math.Round(RatioOf(pair), 3))])
    {
        RateRange = RangeOf(pairs, RatioOf),
        CpuRange = RangeOf(pairs, CpuRatioOf),
    };

    private static double RatioOf(LoadPair pair) => pair.Measured.PerSecond / pair.Stock.PerSecond;

    private static double CpuRatioOf(LoadPair pair) => pair.Measured.CpuPerOp / pair.Stock.CpuPerOp;

    private static MedianInterval? RangeOf(IReadOnlyList<LoadPair> pairs, Func<LoadPair, double> figure) =>
        pairs.Count < MedianInterval.LeastValues ? null : MedianInterval.Of(pairs.Select(figure));

    private static double? ContentionsOf(IEnumerable<WallMeasurement> measured)
    {
        double[] contentions = [.. measured.Select(one => one.ContentionsPerOp).OfType<double>().Order()];
        return contentions.Length == 0 ? null : Math.Round(1000 * contentions[contentions.Length / 2], 2);
    }

    private static double MedianOf(IReadOnlyList<LoadPair> pairs, Func<LoadPair, double> figure, int digits)
    {
        double[] sorted = [.. pairs.Select(figure).Order()];
        return Math.Round((sorted[(sorted.Length - 1) / 2] + sorted[sorted.Length / 2]) / 2, digits);
    }
}

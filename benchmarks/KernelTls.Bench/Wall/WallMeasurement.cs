namespace KernelTls.Bench.Wall;

/// <summary>One row in one mode by the clock: one operation after the other.</summary>
/// <param name="Scenario">The row's name.</param>
/// <param name="Mode">The mode's name.</param>
/// <param name="Operations">So many were measured.</param>
/// <param name="PerSecond">Operations in a second of the time that they took.</param>
/// <param name="Median">Microseconds, of an operation.</param>
/// <param name="Percentile99">Microseconds: 99 of 100 operations took no longer.</param>
/// <param name="CpuSeconds">Of the processor, user and kernel: of both ends, or of the server where a server is measured.</param>
/// <param name="SystemCallsPerOp">Of the same process; null where they cannot be counted.</param>
/// <param name="NotCounted">Why not.</param>
internal sealed record WallMeasurement(
    string Scenario,
    string Mode,
    int Operations,
    double PerSecond,
    double Median,
    double Percentile99,
    double CpuSeconds,
    double? SystemCallsPerOp,
    string? NotCounted)
{
    public static WallMeasurement Of(
        string scenario, string mode, IReadOnlyList<TimeSpan> times, TimeSpan processor, double? systemCallsPerOp, string? notCounted)
    {
        TimeSpan[] sorted = [.. times.Order()];
        TimeSpan sum = sorted.Aggregate(TimeSpan.Zero, (one, other) => one + other);
        return new WallMeasurement(
            scenario,
            mode,
            sorted.Length,
            Math.Round(sorted.Length / sum.TotalSeconds, 1),
            Percentile(sorted, 0.5),
            Percentile(sorted, 0.99),
            Math.Round(processor.TotalSeconds, 3),
            systemCallsPerOp,
            notCounted);
    }

    /// <summary>The smallest that is no smaller than this part of all.</summary>
    private static double Percentile(TimeSpan[] sorted, double part) =>
        Math.Round(sorted[(int)Math.Ceiling(part * sorted.Length) - 1].TotalMicroseconds, 1);
}

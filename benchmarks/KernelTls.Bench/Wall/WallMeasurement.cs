using System.Text.Json.Serialization;
using KernelTls.Bench.Report;

namespace KernelTls.Bench.Wall;

/// <summary>Represents the wall-clock figures of one row in one mode.</summary>
/// <param name="Scenario">The name of the row.</param>
/// <param name="Mode">The name of the mode.</param>
/// <param name="Operations">The number of measured operations.</param>
/// <param name="PerSecond">The number of operations per second.</param>
/// <param name="Mean">The mean duration of an operation, in microseconds.</param>
/// <param name="Median">The median duration of an operation, in microseconds.</param>
/// <param name="Percentile99">The 99th percentile of the duration of an operation, in microseconds.</param>
/// <param name="CpuSeconds">
/// The user and kernel processor time in seconds, of both ends, or of the server alone if only a server is measured.
/// </param>
/// <param name="SystemCallsPerOp">
/// The number of system calls of the same process per operation, or null if they cannot be counted.
/// </param>
/// <param name="NotCounted">The reason why system calls cannot be counted.</param>
internal sealed record WallMeasurement(
    string Scenario,
    string Mode,
    int Operations,
    double PerSecond,
    double Mean,
    double Median,
    double Percentile99,
    double CpuSeconds,
    double? SystemCallsPerOp,
    string? NotCounted)
{
    /// <summary>
    /// Gets the number of times that a thread of this process waited for a managed lock, per operation, or null if the measured
    /// process is another one.
    /// </summary>
    public double? ContentionsPerOp { get; init; }

    /// <summary>Gets the processor time per operation, in microseconds.</summary>
    [JsonIgnore]
    public double CpuPerOp => CpuSeconds * 1e6 / Operations;

    /// <param name="scenario">The name of the row.</param>
    /// <param name="mode">The name of the mode.</param>
    /// <param name="times">The duration of each operation.</param>
    /// <param name="concurrency">The number of operations in progress at any time.</param>
    /// <param name="processor">The processor time of all operations.</param>
    /// <param name="systemCallsPerOp">The value of <see cref="SystemCallsPerOp"/>.</param>
    /// <param name="notCounted">The value of <see cref="NotCounted"/>.</param>
    public static WallMeasurement Of(
        string scenario,
        string mode,
        IReadOnlyList<TimeSpan> times,
        int concurrency,
        TimeSpan processor,
        double? systemCallsPerOp,
        string? notCounted)
    {
        TimeSpan[] sorted = [.. times.Order()];
        TimeSpan sum = sorted.Aggregate(TimeSpan.Zero, (one, other) => one + other);
        return new WallMeasurement(
            scenario,
            mode,
            sorted.Length,
            Math.Round(concurrency * sorted.Length / sum.TotalSeconds, 1),
            Math.Round(sum.TotalMicroseconds / sorted.Length, 1),
            Percentile(sorted, 0.5),
            Percentile(sorted, 0.99),
            Math.Round(processor.TotalSeconds, 3),
            systemCallsPerOp,
            notCounted);
    }

    private static double Percentile(TimeSpan[] sorted, double part) => Math.Round(Percentiles.Of(sorted, part).TotalMicroseconds, 1);
}

namespace KernelTls.Bench.Report;

/// <summary>Represents the figures of a load row other than instructions. Each comes from a separate round.</summary>
/// <param name="Median">
/// The median duration of an operation by the guest's clock: the number of all instructions that ran during the
/// operation.
/// </param>
/// <param name="Percentile99">The 99th percentile of the duration of an operation, in the same unit.</param>
/// <param name="SystemCalls">
/// The number of system calls per operation of the process with both ends, or null if they cannot be counted.
/// </param>
/// <param name="Segments">
/// The number of TCP segments with data per operation in both directions, or null if they cannot be counted.
/// </param>
/// <param name="Records">
/// The number of TLS records per operation in both directions, or null without TLS or if they cannot be counted.
/// </param>
/// <param name="Resumed">
/// The fraction of the handshakes that resumed a session, or null if there were no handshakes.
/// </param>
internal sealed record LoadFigures(
    double Median, double Percentile99, double? SystemCalls, double? Segments, double? Records, double? Resumed)
{
    /// <summary>
    /// Gets the ratio of <see cref="Percentile99"/> to that of the stock stream in the same boot, or null if the latter
    /// was not measured.
    /// </summary>
    public double? Percentile99Ratio { get; init; }

    /// <summary>
    /// Gets the ratio of <see cref="Segments"/> to that of the stock stream in the same boot, or null if the latter was
    /// not measured.
    /// </summary>
    public double? SegmentsRatio { get; init; }

    public LoadFigures WithRatiosTo(LoadFigures reference) => this with
    {
        Percentile99Ratio = Divide(Percentile99, reference.Percentile99),
        SegmentsRatio = Divide(Segments, reference.Segments),
    };

    private static double? Divide(double? one, double? other) => one / other is { } ratio && double.IsFinite(ratio) ? Math.Round(ratio, 3) : null;
}

namespace KernelTls.Bench.Report;

/// <summary>One scenario in one mode.</summary>
/// <param name="Scenario">The row's name.</param>
/// <param name="Mode">The mode's name.</param>
/// <param name="Unit"><see cref="Instructions"/> or <see cref="Bytes"/>.</param>
/// <param name="PerOp">Median of the rounds, per operation.</param>
/// <param name="Spread">Largest less smallest round, or process where there are several, as a part of the median.</param>
/// <param name="AllocatedPerOp">Managed bytes allocated per operation; null where that is not the question.</param>
/// <param name="Rounds">Each measured round, per operation.</param>
internal sealed record Measurement(
    string Scenario, string Mode, string Unit, double PerOp, double Spread, double? AllocatedPerOp, IReadOnlyList<double> Rounds)
{
    public const string Instructions = "instructions";
    public const string Bytes = "bytes";

    /// <summary>To <see cref="RatioTo"/> of the same boot; null where that was not measured.</summary>
    public double? Ratio { get; init; }

    /// <summary>A mode: the stock stream, or nginx on kernel TLS where a server alone is measured.</summary>
    public string? RatioTo { get; init; }

    /// <summary>Rounds before the measured ones, until two agreed; null where there are none.</summary>
    public int? WarmUpRounds { get; init; }

    /// <summary>Of bytes: the process's part.</summary>
    public double? Resident { get; init; }

    /// <summary>Of bytes: the kernel's part.</summary>
    public double? Kernel { get; init; }

    public static Measurement Of(string scenario, string mode, string unit, double? allocatedPerOp, IReadOnlyList<double> rounds)
    {
        double[] sorted = [.. rounds.Order()];
        double median = sorted[sorted.Length / 2];
        return new Measurement(
            scenario,
            mode,
            unit,
            Math.Round(median),
            Math.Round((sorted[^1] - sorted[0]) / median, 4),
            allocatedPerOp is { } bytes ? Math.Round(bytes, 1) : null,
            [.. rounds.Select(round => Math.Round(round))]);
    }
}

using System.Text.Json;
using KernelTls.Bench.Scenarios;

namespace KernelTls.Bench.Report;

/// <summary>Represents the goal of a mode in a row (goals.json).</summary>
/// <param name="Scenario">The name of the row.</param>
/// <param name="Mode">The name of the mode.</param>
/// <param name="Ratio">The maximum ratio to the row's mode of reference.</param>
/// <param name="AllocatedPerOp">The maximum number of managed bytes allocated per operation.</param>
/// <param name="PerOp">The maximum result per operation, in the row's unit.</param>
internal sealed record Goal(string Scenario, string Mode, double? Ratio, double? AllocatedPerOp, double? PerOp)
{
    /// <summary>Gets the maximum of what is left of the stock stream's cost of TLS, as a fraction (<see cref="BenchResults.OverheadLeftOf"/>).</summary>
    public double? OverheadLeft { get; init; }

    /// <summary>Gets the maximum 99th percentile of load, as a ratio to the row's mode of reference.</summary>
    public double? Percentile99 { get; init; }

    /// <summary>Gets the maximum number of TCP segments of load, as a ratio to the row's mode of reference.</summary>
    public double? Segments { get; init; }

    public static IReadOnlyList<Goal> All { get; } = Load();

    public static Goal? Find(Measurement measured) => All.FirstOrDefault(goal => goal.Scenario == measured.Scenario && goal.Mode == measured.Mode);

    /// <summary>Returns whether a goal limits the bytes that a mode of this row may allocate.</summary>
    public static bool LimitsAllocation(string scenario) =>
        All.Any(goal => goal.Scenario == scenario && goal.AllocatedPerOp is not null);

    public static string DescribeOutcome(string? missed) => missed is null ? "-" : missed.Length == 0 ? "yes" : $"NO: {missed}";

    public string Describe(string unit) => string.Join(
        ", ",
        new[]
        {
            OverheadLeft is { } left ? TextTable.Text($"{left:0.00} of the overhead") : null,
            Ratio is { } ratio ? TextTable.Text($"<= {ratio:0.00#}") : null,
            PerOp is { } perOp ? $"<= {TextTable.Amount(perOp, unit)}" : null,
            AllocatedPerOp is { } bytes ? TextTable.Text($"{bytes:N0} B") : null,
            Percentile99 is { } percentile ? TextTable.Text($"p99 <= {percentile:F2}") : null,
            Segments is { } segments ? TextTable.Text($"segments <= {segments:F2}") : null,
        }.OfType<string>());

    /// <summary>
    /// Returns the parts of the goal that are missed, or an empty string if the goal holds. Returns null if the mode of
    /// reference was not measured.
    /// </summary>
    public string? Judge(Measurement measured, BenchResults results)
    {
        List<string> missed = [];
        if (OverheadLeft is { } left)
        {
            if (results.OverheadLeftOf(measured) is not { } actual)
            {
                return null;
            }

            if (actual > left)
            {
                missed.Add("overhead");
            }
        }

        if (Ratio is { } ratio)
        {
            if (measured.Ratio is not { } actual)
            {
                return null;
            }

            if (actual > ratio)
            {
                missed.Add("ratio");
            }
        }

        if (measured.PerOp > PerOp)
        {
            missed.Add("per operation");
        }

        if (AllocatedPerOp is { } bytes && Math.Round(measured.AllocatedPerOp ?? 0) > bytes)
        {
            missed.Add("allocates");
        }

        if (measured.Load?.Percentile99Ratio > Percentile99)
        {
            missed.Add("p99");
        }

        if (measured.Load?.SegmentsRatio > Segments)
        {
            missed.Add("segments");
        }

        return string.Join(", ", missed);
    }

    /// <summary>
    /// Returns a description of the parts of the goal that cannot be checked because a mode to compare with was not
    /// measured. Returns null if there are none.
    /// </summary>
    public string? DescribeUnchecked(Measurement measured, BenchResults results)
    {
        string[] missing =
        [
            .. new[]
            {
                Ratio is not null && measured.Ratio is null ? Row.Find(Scenario).Reference : null,
                OverheadLeft is not null && results.OverheadLeftOf(measured) is null ? $"{Row.Find(Scenario).Reference} or {Modes.ModeTable.Floor}" : null,
            }.OfType<string>(),
        ];
        return missing.Length == 0
            ? null
            : $"not checked: {Scenario} {Mode} {Describe(measured.Unit)}: {string.Join(", ", missing)} was not measured";
    }

    /// <summary>
    /// Returns a description of a goal that lies below the floor of its column, which no implementation can meet, or null if it does not.
    /// </summary>
    public string? DescribeImpossible(Measurement measured, BenchResults results) =>
        Ratio is { } ratio && results.FloorRatioOf(measured) is { } floor && ratio < floor
            ? TextTable.Text($"impossible: {Scenario} {Mode} <= {ratio:0.00#}: the floor is {floor:F3}")
            : null;

    private static IReadOnlyList<Goal> Load()
    {
        using Stream file = typeof(Goal).Assembly.GetManifestResourceStream("goals.json")!;
        return JsonSerializer.Deserialize(file, BenchJson.Default.IReadOnlyListGoal)!;
    }
}

using System.Text.Json;
using KernelTls.Bench.Scenarios;

namespace KernelTls.Bench.Report;

/// <summary>What a mode is to come to in a row (goals.json).</summary>
/// <param name="Scenario">The row.</param>
/// <param name="Mode">The mode.</param>
/// <param name="Ratio">At most this, to the row's mode of reference.</param>
/// <param name="Below">And less than this mode.</param>
/// <param name="AllocatedPerOp">And at most so many managed bytes.</param>
/// <param name="PerOp">And at most so much per operation, in the row's unit.</param>
internal sealed record Goal(string Scenario, string Mode, double? Ratio, string? Below, double? AllocatedPerOp, double? PerOp)
{
    public static IReadOnlyList<Goal> All { get; } = Load();

    public static Goal? Find(Measurement measured) =>
        All.FirstOrDefault(goal => goal.Scenario == measured.Scenario && goal.Mode == measured.Mode);

    /// <summary>A mode of this row may allocate so many bytes and no more.</summary>
    public static bool LimitsAllocation(string scenario) =>
        All.Any(goal => goal.Scenario == scenario && goal.AllocatedPerOp is not null);

    public static string DescribeOutcome(string? missed) => missed is null ? "-" : missed.Length == 0 ? "yes" : $"NO: {missed}";

    public string Describe(string unit) => string.Join(
        ", ",
        new[]
        {
            Ratio is { } ratio ? TextTable.Text($"<= {ratio:F2}") : null,
            PerOp is { } perOp ? $"<= {TextTable.Amount(perOp, unit)}" : null,
            Below is { } mode ? $"< {mode}" : null,
            AllocatedPerOp is { } bytes ? TextTable.Text($"{bytes:N0} B") : null,
        }.OfType<string>());

    /// <summary>What is missed, in words; empty: the goal holds. Null: what it compares with was not measured.</summary>
    public string? Judge(Measurement measured, IReadOnlyList<Measurement> rows)
    {
        List<string> missed = [];
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

        if (rows.FirstOrDefault(row => row.Scenario == Scenario && row.Mode == Below) is { } other && measured.PerOp >= other.PerOp)
        {
            missed.Add($"not below {Below}");
        }

        if (AllocatedPerOp is { } bytes && Math.Round(measured.AllocatedPerOp ?? 0) > bytes)
        {
            missed.Add("allocates");
        }

        return string.Join(", ", missed);
    }

    /// <summary>What of it cannot be judged, because what it compares with was not measured; null: nothing.</summary>
    public string? DescribeUnchecked(Measurement measured, IReadOnlyList<Measurement> rows)
    {
        string[] missing =
        [
            .. new[]
            {
                Ratio is not null && measured.Ratio is null ? Row.Find(Scenario).Reference : null,
                Below is { } mode && !rows.Any(row => row.Scenario == Scenario && row.Mode == mode) ? mode : null,
            }.OfType<string>(),
        ];
        return missing.Length == 0
            ? null
            : $"not checked: {Scenario} {Mode} {Describe(measured.Unit)}: {string.Join(", ", missing)} was not measured";
    }

    private static IReadOnlyList<Goal> Load()
    {
        using Stream file = typeof(Goal).Assembly.GetManifestResourceStream("goals.json")!;
        return JsonSerializer.Deserialize(file, BenchJson.Default.IReadOnlyListGoal)!;
    }
}

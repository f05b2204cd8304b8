namespace KernelTls.Bench.Report;

/// <summary>Represents the result of one scenario in one mode.</summary>
/// <param name="Scenario">The name of the row.</param>
/// <param name="Mode">The name of the mode.</param>
/// <param name="Unit">The unit, <see cref="Instructions"/> or <see cref="Bytes"/>.</param>
/// <param name="PerOp">The median of the rounds, per operation.</param>
/// <param name="Spread">
/// The difference between the largest and the smallest round, as a fraction of the median. If there were several
/// processes, their results are compared instead.
/// </param>
/// <param name="AllocatedPerOp">
/// The number of managed bytes allocated per operation, or null if the row does not measure allocation.
/// </param>
/// <param name="Rounds">
/// The result of each measured round, or of each process if there were several, per operation.
/// </param>
internal sealed record Measurement(
    string Scenario, string Mode, string Unit, double PerOp, double Spread, double? AllocatedPerOp, IReadOnlyList<double> Rounds)
{
    public const string Instructions = "instructions";
    public const string Bytes = "bytes";

    /// <summary>
    /// Gets the ratio to <see cref="RatioTo"/> of the same boot, or null if that mode was not measured.
    /// </summary>
    public double? Ratio { get; init; }

    /// <summary>
    /// Gets the mode of reference: the stock stream, or nginx with kernel TLS if only a server is measured.
    /// </summary>
    public string? RatioTo { get; init; }

    /// <summary>
    /// Gets the number of rounds before the measured ones, until two agreed, or null if there are none.
    /// </summary>
    public int? WarmUpRounds { get; init; }

    /// <summary>
    /// Gets the number of methods compiled during a process's first operations, or null for other rows. A method that is
    /// compiled twice counts twice.
    /// </summary>
    public long? CompiledMethods { get; init; }

    /// <summary>Gets the process's part of the bytes.</summary>
    public double? Resident { get; init; }

    /// <summary>Gets the kernel's part of the bytes.</summary>
    public double? Kernel { get; init; }

    /// <summary>Gets the figures of load, or null if operations run one after another.</summary>
    public LoadFigures? Load { get; init; }

    /// <summary>
    /// Creates the result of a memory measurement. Heaps grow in steps, so the cost of a connection is the average of
    /// all rounds, and the rounds show the steps.
    /// </summary>
    public static Measurement OfMemory(string scenario, string mode, IReadOnlyList<double> resident, IReadOnlyList<double> kernel) =>
        Of(scenario, mode, Bytes, null, [.. resident.Zip(kernel, (r, k) => r + k)]) with
        {
            PerOp = Math.Round(resident.Average() + kernel.Average()),
            Resident = Math.Round(resident.Average()),
            Kernel = Math.Round(kernel.Average()),
        };

    /// <summary>The same in several processes; what is beside the figure is that of the process in the middle.</summary>
    public static Measurement OfProcesses(IReadOnlyList<Measurement> processes)
    {
        Measurement middle = processes.OrderBy(process => process.PerOp).ElementAt(processes.Count / 2);
        return Of(middle.Scenario, middle.Mode, middle.Unit, middle.AllocatedPerOp, [.. processes.Select(process => process.PerOp)]) with
        {
            CompiledMethods = middle.CompiledMethods,
        };
    }

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

using System.Text.Json;

namespace KernelTls.Bench.Report;

/// <summary>
/// Represents figures from another publication (proof-of-concept.json): the throughput of the proof of concept,
/// measured in its own laboratory. They use another metric on other machines. Reports show them beside the figures of
/// this project but never combine the two in a calculation.
/// </summary>
/// <param name="Ratios">
/// What this benchmark measured of the proof of concept's data path while it had a copy of it, as ratios to SslStream.
/// </param>
internal sealed record PublishedReport(
    string Title,
    string Metric,
    string Software,
    string Note,
    IReadOnlyList<PublishedReport.Machine> Machines,
    IReadOnlyList<PublishedReport.Figure> Figures,
    IReadOnlyList<PublishedReport.Ratio> Ratios)
{
    public static PublishedReport ProofOfConcept { get; } = Load();

    /// <summary>Returns the frozen ratio of a row on a version of .NET, or null if it was not measured.</summary>
    public double? RatioOf(string row, int? runtimeMajor) =>
        Ratios.SingleOrDefault(one => one.Row == row && one.Runtime == runtimeMajor)?.ToStock;

    private static PublishedReport Load()
    {
        using Stream file = typeof(PublishedReport).Assembly.GetManifestResourceStream("proof-of-concept.json")!;
        return JsonSerializer.Deserialize(file, BenchJson.Default.PublishedReport)!;
    }

    internal sealed record Machine(string Name, int Cores);

    /// <param name="Row">The row of this project that measures the same.</param>
    /// <param name="Name">The name in the publication.</param>
    /// <param name="ByMachine">The throughput on each machine, in the order of the machines.</param>
    internal sealed record Figure(string Row, string Name, IReadOnlyList<Throughput> ByMachine);

    internal sealed record Ratio(string Row, int Runtime, double ToStock);

    internal sealed record Throughput(string Machine, double Standard, double DirectOpenSsl, double Kernel);
}

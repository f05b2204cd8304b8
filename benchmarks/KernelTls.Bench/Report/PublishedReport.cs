using System.Text.Json;

namespace KernelTls.Bench.Report;

/// <summary>
/// Figures that somebody else has published (proof-of-concept.json): the proof of concept's throughput in its own laboratory.
/// Another metric on other machines, to be shown beside ours and never put into a sum with them.
/// </summary>
internal sealed record PublishedReport(
    string Title,
    string Metric,
    string Software,
    string Note,
    IReadOnlyList<PublishedReport.Machine> Machines,
    IReadOnlyList<PublishedReport.Figure> Figures)
{
    public static PublishedReport ProofOfConcept { get; } = Load();

    private static PublishedReport Load()
    {
        using Stream file = typeof(PublishedReport).Assembly.GetManifestResourceStream("proof-of-concept.json")!;
        return JsonSerializer.Deserialize(file, BenchJson.Default.PublishedReport)!;
    }

    internal sealed record Machine(string Name, int Cores);

    /// <param name="Row">Our row that asks the same.</param>
    /// <param name="Name">What the report calls it.</param>
    /// <param name="ByMachine">In the order of the machines.</param>
    internal sealed record Figure(string Row, string Name, IReadOnlyList<Throughput> ByMachine);

    internal sealed record Throughput(string Machine, double Standard, double DirectOpenSsl, double Kernel);
}

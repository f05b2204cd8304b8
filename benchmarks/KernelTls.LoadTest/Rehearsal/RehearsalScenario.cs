using KernelTls.LoadTest.Report;

namespace KernelTls.LoadTest.Rehearsal;

/// <summary>Represents a scenario of benchmarks/crank that the rehearsal includes.</summary>
/// <param name="Name">The name in benchmarks/crank.</param>
/// <param name="Protocol">The prefix of the names of the commands.</param>
/// <param name="Server">The options of the server.</param>
/// <param name="Client">The options of the client, in which <c>{n}</c> stands for the concurrency.</param>
/// <param name="Rate">The rate to show.</param>
/// <param name="Late">The time to show, or null for none.</param>
internal sealed record RehearsalScenario(
    string Name, string Protocol, string Server, string Client, Metric Rate, Metric? Late)
{
    private const string Timed = "--collectRequestTimings true --concurrencyPerHttpClient {n}";

    private static readonly Metric s_lateAnswer = Metrics.ContentEnd.Metrics[4];

    public static IReadOnlyList<RehearsalScenario> All { get; } =
    [
        Http("h1-get-64k", "--httpVersion 1.1 --responseSize 65536", ""),
        Http("h2-get-64k", "--httpVersion 2.0 --responseSize 65536", ""),
        Http("h1-get-close", "--httpVersion 1.1 --responseSize 0", " --header Connection:close"),
        Http("h1-post-64k", "--httpVersion 1.1 --responseSize 0", " --scenario post --requestContentSize 65536"),
        new(
            "h1-static-1m",
            "http",
            "--useHttps true --httpVersion 1.1 --filename file.bin --sizeInBytes 1048576",
            $"--useHttps true --httpVersion 1.1 --path /file.bin --responseSize 1048576 {Timed}",
            Metrics.RequestsPerSecond,
            s_lateAnswer),
        new("read-write", "sslstream", "", "--scenario ReadWrite --connections {n}", Metrics.BytesRead, null),
    ];

    /// <summary>Creates a scenario whose client expects the size that the server sends.</summary>
    private static RehearsalScenario Http(string name, string both, string client) => new(
        name, "http", $"--useHttps true {both}", $"--useHttps true {both} {Timed}{client}", Metrics.RequestsPerSecond, s_lateAnswer);
}

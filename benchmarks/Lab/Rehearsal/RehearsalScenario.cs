using KernelTls.Lab.Report;

namespace KernelTls.Lab.Rehearsal;

/// <summary>Some of the scenarios of benchmarks/crank, by their names.</summary>
/// <param name="Name">As there.</param>
/// <param name="Protocol">What the commands' names begin with.</param>
/// <param name="Server">The server's options.</param>
/// <param name="Client">The client's; <c>{n}</c> is the concurrency.</param>
/// <param name="Rate">The figure to show.</param>
/// <param name="Late">The time to show; null: none.</param>
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

    /// <summary>The client expects what the server is told to send.</summary>
    private static RehearsalScenario Http(string name, string both, string client) => new(
        name, "http", $"--useHttps true {both}", $"--useHttps true {both} {Timed}{client}", Metrics.RequestsPerSecond, s_lateAnswer);
}

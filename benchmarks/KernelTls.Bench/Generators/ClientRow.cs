using System.Net;
using KernelTls.Bench.Modes;
using KernelTls.Bench.Scenarios;
using KernelTls.Bench.Servers;

namespace KernelTls.Bench.Generators;

/// <summary>Represents a row of load from HttpClient to nginx, which shares no code with .NET. Only the client is measured.</summary>
/// <param name="Name">The name on the command line and in results.</param>
/// <param name="Kind">The requests.</param>
/// <param name="OperationsPerRound">The number of requests of a round.</param>
internal sealed record ClientRow(string Name, HttpExchangeKind Kind, int OperationsPerRound)
{
    private const int Many = 100;
    private const int Size = 64 * 1024;

    public static IReadOnlyList<ClientRow> All { get; } =
    [
        new("nginx-c1-h1-get-1k", new HttpExchangeKind(HttpVersion.Version11) { ResponseSize = 1024 }, 300),
        new("nginx-c1-h1-get-64k", new HttpExchangeKind(HttpVersion.Version11) { ResponseSize = Size }, 50),
        new("nginx-c1-h1-connclose", new HttpExchangeKind(HttpVersion.Version11) { ResponseSize = 1024, Closes = true }, 20),
        new("nginx-c100-h1-get-1k", new HttpExchangeKind(HttpVersion.Version11) { ResponseSize = 1024, Concurrency = Many }, 1500),
        new("nginx-c100-h1-get-64k", new HttpExchangeKind(HttpVersion.Version11) { ResponseSize = Size, Concurrency = Many }, 200),
        new("nginx-c100-h1-post-64k", new HttpExchangeKind(HttpVersion.Version11) { RequestSize = Size, Concurrency = Many }, 200),
        new("nginx-c100-h2-get-1k", new HttpExchangeKind(HttpVersion.Version20) { ResponseSize = 1024, Concurrency = Many }, 2000),
        new("nginx-c100-h2-get-64k", new HttpExchangeKind(HttpVersion.Version20) { ResponseSize = Size, Concurrency = Many }, 200),
    ];

    /// <summary>Gets the modes, all of them of the client.</summary>
    public static IReadOnlyList<string> Modes { get; } = [ModeTable.DirectClient, ModeTable.KernelClient];

    public static ClientRow? Find(string name) => All.FirstOrDefault(row => row.Name == name);

    /// <summary>Creates the scenario for a mode.</summary>
    public Scenario Create(string mode)
    {
        ServedFiles files = new(Kind.ResponseSize == 0 ? [] : [Kind.ResponseSize]);
        return new NginxLoad(ModeTable.Create(mode, BenchCertificates.ReadFrom(files.FullName), Kind.Closes), files, Kind, OperationsPerRound);
    }
}

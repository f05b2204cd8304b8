using System.Net;
using KernelTls.Bench.Modes;

namespace KernelTls.Bench.Scenarios;

/// <summary>A row of the table: a scenario and what is known of it.</summary>
/// <param name="Name">As on the command line and in results.</param>
/// <param name="Create">Makes the scenario for a mode; null: not instructions are counted but memory.</param>
internal sealed record Row(string Name, Func<string, Scenario>? Create)
{
    private const int Kilobyte = 1024;
    private const int Megabyte = Kilobyte * Kilobyte;
    private const int FileSize = 4 * Megabyte;

    private static readonly string[] s_streamModes = ["plain", "sslstream", "direct", "poc", "ktls", "ktls-nopad"];
    private static readonly string[] s_telemetryModes = [.. s_streamModes, ModeTable.KernelWithoutTelemetry];
    private static readonly string[] s_httpModes = ["plain", "sslstream", "poc", "ktls", "ktls-client", "ktls-server"];

    /// <summary>Bytes of one operation that are encrypted and decrypted: what bare crypto cannot do without.</summary>
    public long Payload { get; private init; }

    /// <summary>The modes it is measured in where none are asked for.</summary>
    public IReadOnlyList<string> Modes { get; private init; } = s_streamModes;

    /// <summary>The modes it can be measured in.</summary>
    public IReadOnlyList<string> PossibleModes { get; private init; } = ModeTable.Connections;

    /// <summary>How long a measurement takes, in those of a row of streams.</summary>
    public int Weight { get; private init; } = 1;

    /// <summary>The mode that ratios are to.</summary>
    public string Reference { get; private init; } = ModeTable.Stock;

    public static IReadOnlyList<Row> All { get; } =
    [
        Stream("stream-pingpong-64", 128, mode => new Exchange(mode, 64, operationsPerRound: 1000)) with { Modes = s_telemetryModes },
        Stream("stream-get-64k", 64 + 64 * Kilobyte, mode => new Exchange(mode, 64 * Kilobyte, operationsPerRound: 80)),
        Connection("stream-connclose", resumes: false) with { Modes = s_telemetryModes },
        Connection("stream-connclose-resumed", resumes: true),
        Stream("stream-sendfile-4m", 64 + FileSize, mode => new FileExchange(mode, FileSize)),
        new("idle-memory", null) { Weight = 3 },
        Http("h1-get-0", new(HttpVersion.Version11), operationsPerRound: 300),
        Http("h1-get-64k", new(HttpVersion.Version11) { ResponseSize = 64 * Kilobyte }, operationsPerRound: 50),
        Http("h1-post-64k", new(HttpVersion.Version11) { RequestSize = 64 * Kilobyte }, operationsPerRound: 50),
        Http("h1-connclose", new(HttpVersion.Version11) { Closes = true }, operationsPerRound: 20),
        Http("h2-get-0", new(HttpVersion.Version20), operationsPerRound: 300),
        Http("h2-get-64k", new(HttpVersion.Version20) { ResponseSize = 64 * Kilobyte }, operationsPerRound: 50),
        Http("h2-post-64k", new(HttpVersion.Version20) { RequestSize = 64 * Kilobyte }, operationsPerRound: 50),
        Http("static-1m", new(HttpVersion.Version11) { ResponseSize = Megabyte, IsFile = true }, operationsPerRound: 8),
        Server("static-server-1k", Kilobyte, operationsPerRound: 400),
        Server("static-server-64k", 64 * Kilobyte, operationsPerRound: 200),
        Server("static-server-1m", Megabyte, operationsPerRound: 20),
        Server("static-server-16m", 16 * Megabyte, operationsPerRound: 2),
        Server("proxy-server-64k", 64 * Kilobyte, operationsPerRound: 200, isProxy: true),
    ];

    public static Row Find(string name) => All.Single(row => row.Name == name);

    /// <summary>Rows × modes in the order of the table; no modes: each row's own.</summary>
    /// <exception cref="BenchFailedException">A row has none of the modes.</exception>
    public static (Row Row, string Mode)[] Select(string[] scenarios, string[] modes) =>
    [
        .. from row in All
           where scenarios.Contains(row.Name)
           from mode in row.ModesAmong(modes)
           select (row, mode),
    ];

    /// <summary>
    /// Rows for machines that measure at the same time: each row whole, because its ratios are to what the same boot has measured.
    /// In the order of the table, each to the machine that has least to do so far; no machine without a row.
    /// </summary>
    /// <exception cref="BenchFailedException">A row has none of the modes.</exception>
    public static (string[] Rows, int Measurements)[] Share(string[] scenarios, string[] modes, int machines)
    {
        (List<string> Rows, int Measurements, int Weight)[] shares = [.. Enumerable.Range(0, machines).Select(_ => (new List<string>(), 0, 0))];
        foreach (IGrouping<Row, string> row in Select(scenarios, modes).GroupBy(cell => cell.Row, cell => cell.Mode))
        {
            int least = Array.IndexOf(shares, shares.MinBy(share => share.Weight));
            shares[least].Rows.Add(row.Key.Name);
            shares[least].Measurements += row.Count();
            shares[least].Weight += row.Count() * row.Key.Weight;
        }

        return [.. shares.Where(share => share.Measurements > 0).Select(share => (share.Rows.ToArray(), share.Measurements))];
    }

    /// <summary>One row in one mode, by their names.</summary>
    /// <exception cref="BenchFailedException">There is no such row, or not in this mode.</exception>
    public static (Row Row, string Mode) Select(string scenario, string mode) => Select([scenario], [mode]) is [var cell]
        ? cell
        : throw new BenchFailedException($"there is no row {scenario}");

    private IReadOnlyList<string> ModesAmong(string[] modes)
    {
        string[] possible = [.. PossibleModes.Where(modes.Contains)];
        return modes.Length == 0 ? Modes
            : possible.Length > 0 ? possible
            : throw new BenchFailedException($"{Name} is not measured in these modes, but in {string.Join(", ", PossibleModes)}");
    }

    private static Row Stream(string name, long payload, Func<Mode, Scenario> create) =>
        new(name, mode => create(ModeTable.Create(mode, new BenchCertificates(), resume: false))) { Payload = payload };

    private static Row Connection(string name, bool resumes) =>
        new(name, mode =>
        {
            BenchCertificates certificates = new();
            return new ShortConnection(ModeTable.Create(mode, certificates, resumes), resumes, certificates);
        })
        {
            Payload = 128,
        };

    private static Row Http(string name, HttpExchangeKind kind, int operationsPerRound) =>
        new(name, mode =>
        {
            BenchCertificates certificates = new();
            return new HttpExchange(ModeTable.Create(mode, certificates, kind.Closes), certificates, kind, operationsPerRound);
        })
        {
            Payload = kind.RequestSize + kind.ResponseSize,
            Modes = s_httpModes,
            Weight = 2,
        };

    private static Row Server(string name, int size, int operationsPerRound, bool isProxy = false) =>
        new(name, mode => new ServerScenario(mode, size, isProxy, operationsPerRound))
        {
            Modes = ModeTable.Servers,
            PossibleModes = ModeTable.Servers,
            Reference = ModeTable.NginxKernel,
            Weight = 2,
        };
}

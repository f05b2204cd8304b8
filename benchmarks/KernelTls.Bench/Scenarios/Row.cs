using System.Net;
using KernelTls.Bench.Modes;
using KernelTls.Bench.Report;

namespace KernelTls.Bench.Scenarios;

/// <summary>Represents a row of the table: a scenario and its properties.</summary>
/// <param name="Name">The name on the command line and in results.</param>
/// <param name="Create">
/// A function that creates the scenario for a mode, or null if the row measures memory instead of instructions.
/// </param>
internal sealed record Row(string Name, Func<string, Scenario>? Create)
{
    private const int Kilobyte = 1024;
    private const int Megabyte = Kilobyte * Kilobyte;
    private const int GrpcMessage = 128;
    private const int Concurrency = 100;
    private const int StormConnections = 200;
    private const int StartRequests = 1000;

    /// <summary>The name of the row that sends a large file alone.</summary>
    public const string SentFile = "stream-sendfile-4m";

    /// <summary>The number of bytes of the file of <see cref="SentFile"/>.</summary>
    public const int SentFileSize = 4 * Megabyte;

    private static readonly string[] s_connectionModes = ["plain", "sslstream", "direct", "ktls", "ktls-nopad"];
    private static readonly string[] s_streamModes = SocketSession.IsSupported ? [.. s_connectionModes, ModeTable.TlsSession] : s_connectionModes;
    private static readonly string[] s_telemetryModes = [.. s_streamModes, ModeTable.KernelWithoutTelemetry];
    private static readonly string[] s_stockModes = ["sslstream", ModeTable.Watched];
    private static readonly string[] s_httpModes = ["plain", "sslstream", "ktls", "ktls-client", "ktls-server"];

    private static readonly string[] s_loadModes = ["plain", "sslstream", "direct", "ktls", "ktls-client", "ktls-server"];

    /// <summary>Gets the function that measures memory in a mode, or null if instructions are counted.</summary>
    public Func<string, Task<Measurement>>? MeasureMemory { get; private init; }

    /// <summary>
    /// Gets a value that indicates whether many connections or operations are active at the same time.
    /// </summary>
    public bool IsLoad { get; private init; }

    /// <summary>
    /// Gets a value that indicates whether the row measures the first operations of a process, while nothing is warm. It
    /// is measured in several processes.
    /// </summary>
    public bool IsStart { get; private init; }

    /// <summary>
    /// Gets the number of bytes that one operation encrypts and decrypts. The floor contains their cost in bare crypto.
    /// </summary>
    public long Payload { get; private init; }

    /// <summary>
    /// Gets the size of the file that a response of the row is and the row with an empty response, or null if it is no file.
    /// </summary>
    public (int Size, string EmptyRow)? File { get; private init; }

    /// <summary>Gets the modes to measure if no modes are requested.</summary>
    public IReadOnlyList<string> Modes { get; private init; } = s_streamModes;

    /// <summary>Gets the modes that the row supports.</summary>
    public IReadOnlyList<string> PossibleModes { get; private init; } = ModeTable.Connections;

    /// <summary>Gets the duration of a measurement, relative to that of a row of streams.</summary>
    public int Weight { get; private init; } = 1;

    /// <summary>Gets the mode of reference for ratios.</summary>
    public string Reference { get; private init; } = ModeTable.Stock;

    /// <summary>
    /// Gets a value that indicates whether the recorded times are those of another client than the operations', so that they give no
    /// rate.
    /// </summary>
    public bool IsStorm { get; private init; }

    /// <summary>Gets a value that indicates whether the row measures a library's client.</summary>
    public bool IsLibrary => Reference == ModeTable.Unwoven;

    public static IReadOnlyList<Row> All { get; } =
    [
        Stream("stream-pingpong-64", 128, mode => new Exchange(mode, 64, operationsPerRound: 1000)) with { Modes = s_telemetryModes },
        Stream("stream-get-64k", 64 + 64 * Kilobyte, mode => new Exchange(mode, 64 * Kilobyte, operationsPerRound: 80)),
        Connection("stream-connclose", resumes: false) with { Modes = s_telemetryModes },
        Connection("stream-connclose-resumed", resumes: true).WithoutTlsSession(),
        Connection("stock-connclose", resumes: false) with { Modes = s_stockModes, PossibleModes = s_stockModes },
        Connection("stock-connclose-resumed", resumes: true) with { Modes = s_stockModes, PossibleModes = s_stockModes },
        Mutual("mtls-connclose", resumes: false),
        Mutual("mtls-connclose-resumed", resumes: true),
        Stream(SentFile, 64 + SentFileSize, mode => new FileExchange(mode, SentFileSize)).WithoutTlsSession(),
        Memory("idle-memory", (name, mode) => IdleMemory.MeasureAsync(name, ModeTable.Create(mode, new BenchCertificates(), resume: false))) with { PossibleModes = ModeTable.Streams },
        Http("h1-get-0", new(HttpVersion.Version11), operationsPerRound: 300),
        Http("h1-get-64k", new(HttpVersion.Version11) { ResponseSize = 64 * Kilobyte }, operationsPerRound: 50),
        Http("h1-post-64k", new(HttpVersion.Version11) { RequestSize = 64 * Kilobyte }, operationsPerRound: 50),
        Http("h1-connclose", new(HttpVersion.Version11) { Closes = true }, operationsPerRound: 20),
        Http("h2-get-0", new(HttpVersion.Version20), operationsPerRound: 300),
        Http("h2-get-64k", new(HttpVersion.Version20) { ResponseSize = 64 * Kilobyte }, operationsPerRound: 50),
        Http("h2-post-64k", new(HttpVersion.Version20) { RequestSize = 64 * Kilobyte }, operationsPerRound: 50),
        Http("static-1m", new(HttpVersion.Version11) { ResponseSize = Megabyte, IsFile = true }, operationsPerRound: 8),
        Http("h2-static-1m", new(HttpVersion.Version20) { ResponseSize = Megabyte, IsFile = true }, operationsPerRound: 8),
        Start("start-stream", 128, mode => new FirstConnection(ModeTable.Create(mode, new BenchCertificates(), resume: false))),
        Start("start-h1-1000", new(HttpVersion.Version11)),
        Start("start-h2-1000", new(HttpVersion.Version20)),
        Start("start-c100-h2-1000", new(HttpVersion.Version20) { Concurrency = Concurrency }),
        Load("c100-h1-get-0", new(HttpVersion.Version11), operationsPerRound: 1500),
        Load("c100-h1-get-64k", new(HttpVersion.Version11) { ResponseSize = 64 * Kilobyte }, operationsPerRound: 200),
        Load("c100-h1-post-64k", new(HttpVersion.Version11) { RequestSize = 64 * Kilobyte }, operationsPerRound: 200),
        Load("c100-h1-connclose", new(HttpVersion.Version11) { Closes = true }, operationsPerRound: 100),
        Load("c100-h2-get-0", new(HttpVersion.Version20), operationsPerRound: 2000),
        Load("c100-h2-get-64k", new(HttpVersion.Version20) { ResponseSize = 64 * Kilobyte }, operationsPerRound: 200),
        Load("c100-h2-post-64k", new(HttpVersion.Version20) { RequestSize = 64 * Kilobyte }, operationsPerRound: 200),
        Load("c100-grpc-unary", new(HttpVersion.Version20) { RequestSize = GrpcMessage, ResponseSize = GrpcMessage, IsGrpc = true }, operationsPerRound: 1000),
        Load("c100-static-64k", new(HttpVersion.Version11) { ResponseSize = 64 * Kilobyte, IsFile = true }, operationsPerRound: 200),
        Storm("c200-storm"),
        Memory("c1000-idle", HttpIdleMemory.MeasureAsync) with { Modes = s_loadModes, IsLoad = true },
        Server("static-server-1k", Kilobyte, operationsPerRound: 400),
        Server("static-server-64k", 64 * Kilobyte, operationsPerRound: 200),
        Server("static-server-1m", Megabyte, operationsPerRound: 20),
        Server("static-server-16m", 16 * Megabyte, operationsPerRound: 2),
        Server("proxy-server-64k", 64 * Kilobyte, operationsPerRound: 200, isProxy: true),
        Library("lib-npgsql-copy", mode => new PostgresCopy(mode)),
        Library("lib-redis-64k", mode => new RedisGet(mode)),
    ];

    public static Row Find(string name) => All.Single(row => row.Name == name);

    /// <summary>
    /// Returns rows × modes in the order of the table. If there are no modes, each row has its default modes.
    /// </summary>
    /// <exception cref="BenchFailedException">A row has none of the modes.</exception>
    public static (Row Row, string Mode)[] Select(string[] scenarios, string[] modes) =>
    [
        .. from row in All
           where scenarios.Contains(row.Name)
           from mode in row.ModesAmong(modes)
           select (row, mode),
    ];

    /// <summary>
    /// Distributes rows over machines that measure at the same time. A row is never split, because its ratios refer to
    /// measurements of the same boot. In the order of the table, each row is assigned to the machine with the least
    /// work so far. The result contains no machine without a row.
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

    /// <summary>Returns one row and one mode by their names.</summary>
    /// <exception cref="BenchFailedException">There is no such row, or it does not have this mode.</exception>
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

    private static Row Memory(string name, Func<string, string, Task<Measurement>> measure) =>
        new(name, Create: null) { MeasureMemory = mode => measure(name, mode), Weight = 3 };

    private static Row Stream(string name, long payload, Func<Mode, Scenario> create) =>
        new(name, mode => create(ModeTable.Create(mode, new BenchCertificates(), resume: false)))
        {
            Payload = payload,
            PossibleModes = ModeTable.Streams,
        };

    /// <summary>Creates a row whose clients have a certificate.</summary>
    private static Row Mutual(string name, bool resumes) => Connection(name, resumes, mutual: true) with
    {
        Modes = s_loadModes,
        PossibleModes = ModeTable.Connections,
    };

    private static Row Connection(string name, bool resumes, bool mutual = false) =>
        new(name, mode =>
        {
            BenchCertificates certificates = new(mutual);
            return new ShortConnection(ModeTable.Create(mode, certificates, resumes), resumes, certificates);
        })
        {
            Payload = 128,
            PossibleModes = ModeTable.Streams,
        };

    /// <summary>
    /// Excludes TlsSocketSession, which cannot wait for room in a socket's buffer and does not resume sessions.
    /// </summary>
    private Row WithoutTlsSession() => this with { Modes = s_connectionModes, PossibleModes = ModeTable.Connections };

    private static Row Http(string name, HttpExchangeKind kind, int operationsPerRound) =>
        new(name, mode =>
        {
            BenchCertificates certificates = new();
            return new HttpExchange(ModeTable.Create(mode, certificates, kind.Closes), certificates, kind, operationsPerRound);
        })
        {
            Payload = kind.RequestSize + kind.ResponseSize,
            File = kind is { IsFile: true, Version.Major: 1 } ? (kind.ResponseSize, "h1-get-0") : null,
            Modes = s_httpModes,
            PossibleModes = ModeTable.Http,
            Weight = 2,
        };

    private static Row Start(string name, HttpExchangeKind kind) =>
        Start(name, kind.RequestSize + kind.ResponseSize, mode =>
        {
            BenchCertificates certificates = new();
            return new FirstRequests(ModeTable.Create(mode, certificates, resume: false), certificates, kind, StartRequests);
        });

    private static Row Start(string name, long payload, Func<string, Scenario> create) =>
        new(name, create) { IsStart = true, Payload = payload, Modes = s_loadModes, Weight = 2 };

    private static Row Load(string name, HttpExchangeKind kind, int operationsPerRound) =>
        new(name, mode =>
        {
            BenchCertificates certificates = new();
            Mode chosen = ModeTable.Create(mode, certificates, kind.Closes);
            HttpExchangeKind load = kind with { Concurrency = Concurrency };
            return kind.IsGrpc
                ? new GrpcLoad(chosen, certificates, load, operationsPerRound)
                : new ConcurrentExchange(chosen, certificates, load, operationsPerRound);
        })
        {
            Payload = kind.RequestSize + kind.ResponseSize,
            File = kind.IsFile ? (kind.ResponseSize, "c100-h1-get-0") : null,
            Modes = s_loadModes,
            PossibleModes = ModeTable.Http,
            IsLoad = true,
            Weight = 3,
        };

    private static Row Storm(string name) =>
        new(name, mode =>
        {
            BenchCertificates certificates = new();
            HttpExchangeKind kind = new(HttpVersion.Version11) { Concurrency = StormConnections };
            return new HandshakeStorm(ModeTable.Create(mode, certificates, resume: false), certificates, kind);
        })
        {
            Modes = s_loadModes,
            IsLoad = true,
            IsStorm = true,
            Weight = 3,
        };

    private static Row Server(string name, int size, int operationsPerRound, bool isProxy = false) =>
        new(name, mode => new ServerScenario(mode, size, isProxy, operationsPerRound))
        {
            Modes = ModeTable.Servers,
            PossibleModes = ModeTable.Servers,
            Reference = ModeTable.NginxKernel,
            Weight = 2,
        };

    private static Row Library(string name, Func<string, Scenario> create) =>
        new(name, create)
        {
            Modes = ModeTable.Libraries,
            PossibleModes = ModeTable.Libraries,
            Reference = ModeTable.Unwoven,
            Weight = 2,
        };
}

using System.Net;
using KernelTls.Bench.Modes;

namespace KernelTls.Bench.Scenarios;

/// <summary>A row of the table: a scenario and what is known of it.</summary>
/// <param name="Name">As on the command line and in results.</param>
/// <param name="Payload">Bytes of one operation that are encrypted and decrypted: what bare crypto cannot do without.</param>
/// <param name="Resumes">Sessions are resumed.</param>
/// <param name="Create">Makes the scenario for a mode; null: not instructions are counted but memory.</param>
internal sealed record Row(string Name, long Payload, bool Resumes, Func<Mode, BenchCertificates, Scenario>? Create)
{
    private const int Kilobyte = 1024;
    private const int FileSize = 4 * Kilobyte * Kilobyte;
    private const int StaticFileSize = Kilobyte * Kilobyte;

    private static readonly string[] s_streamModes = ["plain", "sslstream", "direct", "poc", "ktls", "ktls-nopad"];
    private static readonly string[] s_httpModes = ["plain", "sslstream", "poc", "ktls", "ktls-client", "ktls-server"];

    /// <summary>In so many processes, of which the middle one counts: where a figure is mostly threads that hand over.</summary>
    public int Processes { get; private init; } = 1;

    /// <summary>The modes it is measured in where none are asked for.</summary>
    public IReadOnlyList<string> Modes { get; private init; } = s_streamModes;

    public static IReadOnlyList<Row> All { get; } =
    [
        new("stream-pingpong-64", 128, false, (mode, _) => new Exchange(mode, 64, operationsPerRound: 1000)) { Processes = 3 },
        new("stream-get-64k", 64 + 64 * Kilobyte, false, (mode, _) => new Exchange(mode, 64 * Kilobyte, operationsPerRound: 150)),
        new("stream-connclose", 128, false, (mode, certificates) => new ShortConnection(mode, resumes: false, certificates)),
        new("stream-connclose-resumed", 128, true, (mode, certificates) => new ShortConnection(mode, resumes: true, certificates)),
        new("stream-sendfile-4m", 64 + FileSize, false, (mode, _) => new FileExchange(mode, FileSize)),
        new("idle-memory", 0, false, null),
        Http("h1-get-0", new(HttpVersion.Version11), operationsPerRound: 300),
        Http("h1-get-64k", new(HttpVersion.Version11) { ResponseSize = 64 * Kilobyte }, operationsPerRound: 80),
        Http("h1-post-64k", new(HttpVersion.Version11) { RequestSize = 64 * Kilobyte }, operationsPerRound: 80),
        Http("h1-connclose", new(HttpVersion.Version11) { Closes = true }, operationsPerRound: 20),
        Http("h2-get-0", new(HttpVersion.Version20), operationsPerRound: 300),
        Http("h2-get-64k", new(HttpVersion.Version20) { ResponseSize = 64 * Kilobyte }, operationsPerRound: 80),
        Http("h2-post-64k", new(HttpVersion.Version20) { RequestSize = 64 * Kilobyte }, operationsPerRound: 80),
        Http("static-1m", new(HttpVersion.Version11) { ResponseSize = StaticFileSize, IsFile = true }, operationsPerRound: 8),
    ];

    private static Row Http(string name, HttpExchangeKind kind, int operationsPerRound) =>
        new(
            name,
            kind.RequestSize + kind.ResponseSize,
            kind.Closes,
            (mode, certificates) => new HttpExchange(mode, certificates, kind, operationsPerRound))
        {
            Modes = s_httpModes,
        };

    public static Row Find(string name) => All.Single(row => row.Name == name);
}

using KernelTls.Bench.Modes;

namespace KernelTls.Bench.Generators;

/// <summary>Represents a row of load whose client is a program that shares no code with .NET. Only the server is measured.</summary>
/// <param name="Name">The name on the command line and in results.</param>
/// <param name="Generator">The client.</param>
/// <param name="Connections">The number of connections.</param>
/// <param name="Path">The path of the requests.</param>
internal sealed record GeneratorRow(string Name, Generator Generator, int Connections, string Path)
{
    private const int Kilobyte = 1024;
    private const int Megabyte = Kilobyte * Kilobyte;

    private static readonly Generator s_wrk = new Wrk();
    private static readonly Generator s_hey = new Hey();
    private static readonly Generator s_h2load = new H2Load();

    /// <summary>Gets the number of requests in progress on each connection.</summary>
    public int Streams { get; private init; } = 1;

    /// <summary>Gets the number of bytes that each request sends.</summary>
    public int UploadSize { get; private init; }

    /// <summary>Gets a value that indicates whether each request has a connection of its own.</summary>
    public bool Closes { get; private init; }

    /// <summary>Gets the rows: HTTP/1.1 by wrk and hey, HTTP/2 by h2load, whose names have connections × streams.</summary>
    public static IReadOnlyList<GeneratorRow> All { get; } =
    [
        Download("wrk-c1-get-0", s_wrk, 1, 0),
        Download("wrk-c100-get-0", s_wrk, 100, 0),
        Download("wrk-c1000-get-0", s_wrk, 1000, 0),
        Download("wrk-c1-get-64k", s_wrk, 1, 64 * Kilobyte),
        Download("wrk-c100-get-64k", s_wrk, 100, 64 * Kilobyte),
        Download("wrk-c100-get-1m", s_wrk, 100, Megabyte),
        new("wrk-c100-file-64k", s_wrk, 100, $"/{64 * Kilobyte}"),
        Upload("wrk-c100-post-64k", s_wrk, 100, 64 * Kilobyte),
        Download("wrk-c1-connclose", s_wrk, 1, 0) with { Closes = true },
        Download("wrk-c100-connclose", s_wrk, 100, 0) with { Closes = true },
        Upload("hey-c100-post-1m", s_hey, 100, Megabyte),
        Download("hey-c100-connclose", s_hey, 100, 0) with { Closes = true },
        Download("h2load-1x1-get-0", s_h2load, 1, 0),
        Download("h2load-1x100-get-0", s_h2load, 1, 0) with { Streams = 100 },
        Download("h2load-10x100-get-0", s_h2load, 10, 0) with { Streams = 100 },
        Download("h2load-1000x1-get-0", s_h2load, 1000, 0),
        Download("h2load-10x10-get-64k", s_h2load, 10, 64 * Kilobyte) with { Streams = 10 },
        Download("h2load-10x100-get-64k", s_h2load, 10, 64 * Kilobyte) with { Streams = 100 },
        Download("h2load-10x10-get-1m", s_h2load, 10, Megabyte) with { Streams = 10 },
        Upload("h2load-10x10-post-64k", s_h2load, 10, 64 * Kilobyte) with { Streams = 10 },
    ];

    /// <summary>Gets the modes, all of them of the server.</summary>
    public static IReadOnlyList<string> Modes { get; } = [ModeTable.Direct, ModeTable.Kernel];

    public static GeneratorRow? Find(string name) => All.FirstOrDefault(row => row.Name == name);

    private static GeneratorRow Download(string name, Generator generator, int connections, int size) =>
        new(name, generator, connections, $"{GeneratorServer.BytesPath}/{size}");

    private static GeneratorRow Upload(string name, Generator generator, int connections, int size) =>
        new(name, generator, connections, GeneratorServer.UploadPath) { UploadSize = size };
}

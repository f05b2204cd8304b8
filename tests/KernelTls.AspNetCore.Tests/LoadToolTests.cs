using System.Globalization;
using System.Security.Authentication;
using System.Text.RegularExpressions;
using KernelTls.Tests;

namespace KernelTls.AspNetCore.Tests;

/// <summary>
/// h2load on HTTP/2 and wrk on HTTP/1.1, on twenty connections. KERNELTLS_REQUESTS: how many requests h2load makes of each kind,
/// and, at 500 a second, how long wrk goes on (1000; in the lab 100, on five connections).
/// </summary>
public class LoadToolTests
{
    private const int FileSize = 1 << 20;

    internal static int Requests { get; } = int.Parse(
        Environment.GetEnvironmentVariable("KERNELTLS_REQUESTS") ?? (Cell.IsLab ? "100" : "1000"), CultureInfo.InvariantCulture);

    private static readonly int s_connections = Math.Clamp(Requests / 20, 1, 20);
    private static readonly int s_seconds = Math.Max(Cell.IsLab ? 10 : 2, Requests / 500);

    // What is enough for one request is enough for a thousand.
    private static readonly TimeSpan s_limit = Limits.Wait * Math.Max(1, Requests / 1000);

    public static TheoryData<TlsMode, string, int> EveryBody =>
        [.. from mode in Modes.Costly
            from body in new[] { ("/bytes/0", 0), ("/bytes/65536", 65_536), ("/file", FileSize) }
            select new TheoryDataRow<TlsMode, string, int>(mode, body.Item1, body.Item2)];

    /// <summary>It counts the bytes and does not look at them; ten requests at a time on a connection.</summary>
    [Theory]
    [MemberData(nameof(EveryBody))]
    public async Task H2load_counts_no_error(TlsMode mode, string path, int size)
    {
        await using InteropServer server = await StartAsync(mode);

        using ExternalProgram h2load = ExternalProgram.Start(
            "h2load", null, $"--requests={Requests}", $"--clients={s_connections}", "--max-concurrent-streams=10", server.Address(path));
        string said = await h2load.SucceedAsync(s_limit);

        Assert.Contains("Application protocol: h2\n", said, StringComparison.Ordinal);
        Assert.Contains(
            $"requests: {Requests} total, {Requests} started, {Requests} done, {Requests} succeeded, 0 failed, 0 errored, 0 timeout\n",
            said,
            StringComparison.Ordinal);
        Assert.Contains($"status codes: {Requests} 2xx, 0 3xx, 0 4xx, 0 5xx\n", said, StringComparison.Ordinal);
        Assert.Contains($"({(long)Requests * size}) data\n", said, StringComparison.Ordinal);
        server.AssertConnections(s_connections, SslProtocols.Tls13);
    }

    /// <summary>It compares every body with the file that has to arrive. It ends in the midst of answers.</summary>
    [Theory]
    [MemberData(nameof(EveryBody))]
    public async Task Wrk_counts_no_error(TlsMode mode, string path, int size)
    {
        await using InteropServer server = await StartAsync(mode);
        File.WriteAllBytes(server.Directory["expected"], Pattern.Take(size));
        File.WriteAllText(server.Directory["check.lua"], """
            local threads = {}

            function setup(thread)
                table.insert(threads, thread)
            end

            function init(arguments)
                expected = io.open("expected", "rb"):read("*a")
                right = 0
                wrong = 0
            end

            function response(status, headers, body)
                if status == 200 and body == expected then right = right + 1 else wrong = wrong + 1 end
            end

            function done(summary, latency, requests)
                local e = summary.errors
                print(string.format(
                    "right %d wrong %d connect %d read %d write %d status %d timeout %d",
                    threads[1]:get("right"), threads[1]:get("wrong"), e.connect, e.read, e.write, e.status, e.timeout))
            end
            """);

        using ExternalProgram wrk = ExternalProgram.Start(
            "wrk", server.Directory.FullName, "--threads", "1", "--connections", $"{s_connections}", "--duration", $"{s_seconds}s",
            "--timeout", "60s", "--script", "check.lua", $"https://127.0.0.1:{server.Port}{path}");
        string said = await wrk.SucceedAsync(s_limit);

        Match counts = Regex.Match(said, @"^right (\d+) (.*)$", RegexOptions.Multiline);
        Assert.Equal("wrong 0 connect 0 read 0 write 0 status 0 timeout 0", counts.Groups[2].Value);
        Assert.True(int.Parse(counts.Groups[1].Value, CultureInfo.InvariantCulture) > 0, said);
        Assert.DoesNotContain("Socket errors", said, StringComparison.Ordinal);
        Assert.DoesNotContain("Non-2xx", said, StringComparison.Ordinal);
        server.AssertConnections(s_connections, SslProtocols.Tls13);
    }

    private static async Task<InteropServer> StartAsync(TlsMode mode)
    {
        InteropServer server = await InteropServer.StartAsync(mode);
        server.AddFile("file", FileSize);
        return server;
    }
}

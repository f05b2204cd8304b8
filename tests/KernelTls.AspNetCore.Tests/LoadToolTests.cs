using System.Globalization;
using System.Security.Authentication;
using System.Text.RegularExpressions;
using KernelTls.Tests;

namespace KernelTls.AspNetCore.Tests;

/// <summary>Tests h2load and curl on both protocols, and wrk on HTTP/1.1.</summary>
[Trait("loop", "outer")]
public class LoadToolTests
{
    private const int FileSize = 1 << 20;

    private static readonly string[] s_protocols = ["http/1.1", "h2"];
    private static readonly (string Path, int Size)[] s_bodies = [("/bytes/0", 0), ("/bytes/65536", 65_536), ("/file", FileSize)];

    public static TheoryData<TlsMode, string, int> EveryBody =>
        [.. from mode in Modes.Costly
            from body in s_bodies
            select new TheoryDataRow<TlsMode, string, int>(mode, body.Path, body.Size)];

    public static TheoryData<TlsMode, string, int, string> EveryBodyAndProtocol =>
        [.. from mode in Modes.Costly
            from body in s_bodies
            from protocol in s_protocols
            select new TheoryDataRow<TlsMode, string, int, string>(mode, body.Path, body.Size, protocol)];

    public static TheoryData<TlsMode, string> BothProtocols => Modes.CostlyWith("1.1", "2");

    /// <summary>
    /// h2load counts the bytes and does not check them; on HTTP/2 it sends ten requests at a time on a connection.
    /// </summary>
    [Theory]
    [MemberData(nameof(EveryBodyAndProtocol))]
    public async Task H2load_counts_no_error(TlsMode mode, string path, int size, string protocol)
    {
        int requests = Load.RequestsOf(size);
        await using InteropServer server = await StartAsync(mode);

        using ExternalProgram h2load = ExternalProgram.Start(
            "h2load", null, protocol == "h2" ? "--max-concurrent-streams=10" : "--h1",
            $"--requests={requests}", $"--clients={Load.Connections}", server.Address(path));
        string said = await h2load.SucceedAsync(Load.Limit);

        Assert.Contains($"Application protocol: {protocol}\n", said, StringComparison.Ordinal);
        Assert.Contains(
            $"requests: {requests} total, {requests} started, {requests} done, {requests} succeeded, 0 failed, 0 errored, 0 timeout\n",
            said,
            StringComparison.Ordinal);
        Assert.Contains($"status codes: {requests} 2xx, 0 3xx, 0 4xx, 0 5xx\n", said, StringComparison.Ordinal);
        Assert.Contains($"({(long)requests * size}) data\n", said, StringComparison.Ordinal);
        server.AssertConnections(Load.Connections, SslProtocols.Tls13);
    }

    /// <summary>
    /// wrk's script compares every body with the expected file. wrk ends by its clock or by SIGINT, which it sends to
    /// itself after a number of responses while others are in progress.
    /// </summary>
    [Theory]
    [MemberData(nameof(EveryBody))]
    public async Task Wrk_counts_no_error(TlsMode mode, string path, int size)
    {
        int requests = Load.RequestsOf(size);
        await using InteropServer server = await StartAsync(mode);
        File.WriteAllBytes(server.Directory["expected"], Pattern.Take(size));
        File.WriteAllText(server.Directory["check.lua"], $$"""
            local ffi = require("ffi")
            ffi.cdef("int getpid(void); int kill(int, int);")
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
                if right + wrong == {{requests}} then ffi.C.kill(ffi.C.getpid(), 2) end
            end

            function done(summary, latency, requests)
                local e = summary.errors
                print(string.format(
                    "right %d wrong %d connect %d read %d write %d status %d timeout %d",
                    threads[1]:get("right"), threads[1]:get("wrong"), e.connect, e.read, e.write, e.status, e.timeout))
            end
            """);

        using ExternalProgram wrk = ExternalProgram.Start(
            "wrk", server.Directory.FullName, "--threads", "1", "--connections", $"{Load.Connections}",
            "--duration", $"{Load.Limit.TotalSeconds}s", "--timeout", "60s", "--script", "check.lua",
            $"https://127.0.0.1:{server.Port}{path}");
        string said = await wrk.SucceedAsync(Load.Limit);

        Match counts = Regex.Match(said, @"^right (\d+) (.*)$", RegexOptions.Multiline);
        Assert.Equal("wrong 0 connect 0 read 0 write 0 status 0 timeout 0", counts.Groups[2].Value);
        Assert.InRange(int.Parse(counts.Groups[1].Value, CultureInfo.InvariantCulture), requests, int.MaxValue);
        Assert.DoesNotContain("Socket errors", said, StringComparison.Ordinal);
        Assert.DoesNotContain("Non-2xx", said, StringComparison.Ordinal);
        server.AssertConnections(Load.Connections, SslProtocols.Tls13);
    }

    /// <summary>Sends one request after the other on one connection. All responses differ in length.</summary>
    [Theory]
    [MemberData(nameof(BothProtocols))]
    public async Task Curl_gets_every_answer(TlsMode mode, string http)
    {
        await using InteropServer server = await StartAsync(mode);

        using ExternalProgram curl = Curl.Start(
            server.Port, server.Directory, SslProtocols.Tls13, $"--http{http}", "--output", "/dev/null",
            "--write-out", "%{http_version} %{response_code} %{size_download} %{num_connects}\n",
            server.Address($"/bytes/[1-{Load.Requests}]"));
        string said = await curl.SucceedAsync(Load.Limit);

        Assert.Equal(string.Concat(Enumerable.Range(1, Load.Requests).Select(i => $"{http} 200 {i} {(i == 1 ? 1 : 0)}\n")), said);
        server.AssertConnections(1, SslProtocols.Tls13);
    }

    private static async Task<InteropServer> StartAsync(TlsMode mode)
    {
        InteropServer server = await InteropServer.StartAsync(mode);
        server.AddFile("file", FileSize);
        return server;
    }
}

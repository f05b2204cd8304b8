using KernelTls.Bench.Generators;
using KernelTls.Bench.Modes;
using KernelTls.Bench.Wall;

namespace KernelTls.Bench.Tests;

/// <summary>Tests the rows whose client is a program that shares no code with .NET.</summary>
public class GeneratorTests
{
    private const string H2LoadReport =
        "Application protocol: h2\n\nfinished in 2.00s, 1.50 req/s, 1MB/s\nrequests: 3 total, 4 started, 3 done, 3 succeeded, 0 failed, 0 errored, 0 timeout\n";

    private const string HeyHeader = "response-time,DNS+dialup,DNS,Request-write,Response-delay,Response-read,status-code,offset\n";

    private static readonly string[] s_rows = ["wrk-c1-connclose", "wrk-c100-file-64k", "h2load-10x10-post-64k"];

    // The lab's cells have kernel TLS, and no hey.
    private static readonly bool s_hasKernel = KtlsPlatform.Probe().IsSupported;

    // A cell on User-Mode Linux takes most of a second for a hundred handshakes, and its scheduler counts processor time in ticks of 10 ms,
    // so that a server which never runs for a whole tick has used none.
    private static readonly TimeSpan s_length = TimeSpan.FromSeconds(s_hasKernel ? 5 : 1);
    private static readonly double s_leastCpuSeconds = s_hasKernel ? 0 : 0.001;

    private static readonly string[] s_modes = s_hasKernel ? [ModeTable.Kernel] : [ModeTable.Stock, ModeTable.Direct];

    public static TheoryData<string, string> Cells =>
        [.. from row in s_hasKernel ? s_rows : [.. s_rows, "hey-c100-post-1m"] from mode in s_modes select new TheoryDataRow<string, string>(row, mode)];

    public static TheoryData<string, string> Children => s_hasKernel
        ? new() { { "nginx-c1-h1-connclose", ModeTable.KernelClient } }
        : new()
        {
            { "c100-h1-get-0", ModeTable.Stock },
            { "nginx-c1-h1-connclose", ModeTable.DirectClient },
            { "nginx-c100-h1-post-64k", ModeTable.DirectClient },
            { "nginx-c100-h2-get-1k", ModeTable.Stock },
        };

    [Theory]
    [Trait("loop", "outer")]
    [MemberData(nameof(Cells))]
    public async Task A_row_measures_the_server(string name, string mode)
    {
        GeneratorRow row = GeneratorRow.Find(name)!;
        ServerTests.SkipWithout(row.Generator.Program);
        await using GeneratorSubject subject = await GeneratorSubject.StartAsync(
            row, mode, s_length, TestContext.Current.CancellationToken, warmUpRounds: 1);
        WallMeasurement measured = await subject.MeasureAsync(TestContext.Current.CancellationToken);

        Assert.InRange(measured.Operations, row.Connections, int.MaxValue);
        Assert.InRange(measured.PerSecond, 1, double.MaxValue);
        Assert.InRange(measured.Median, 1, measured.Percentile99);

        // A server that works cannot use more than all processors, nor nothing.
        Assert.InRange(measured.CpuSeconds, s_leastCpuSeconds, s_length.TotalSeconds * 10 * Environment.ProcessorCount);
        Assert.Null(measured.ContentionsPerOp);
    }

    /// <summary>
    /// Runs what eng/bench --load does in every way that this machine has: stock, OpenSSL on the socket and, in the lab's cells as on a hosted
    /// runner, kernel TLS.
    /// </summary>
    [Fact]
    [Trait("loop", "outer")]
    public async Task Load_has_every_way_of_this_machine_beside_the_stock_stream()
    {
        ServerTests.SkipWithout("wrk");
        List<string> started = [];
        LoadRun run = new(["wrk-c1-get-64k"], [], s_length, TextWriter.Null, mostTurns: 1, async (row, mode, cancellationToken) =>
        {
            started.Add(mode);
            return await GeneratorSubject.StartAsync(GeneratorRow.Find(row)!, mode, s_length, cancellationToken, warmUpRounds: 1);
        });

        LoadResults results = await run.RunAsync(TestContext.Current.CancellationToken);

        string[] ways = s_hasKernel ? [ModeTable.Direct, ModeTable.Kernel] : [ModeTable.Direct];
        Assert.Equal(ways, results.Rows.Select(row => row.Mode));
        Assert.Equal([ModeTable.Stock, .. ways], started);
        Assert.All(results.Rows, row => Assert.True(row is { PerSecond: > 0, RateRatio: > 0, Failures: 0 }, $"{row}"));

        // What the figures depend on stands above them.
        await using StringWriter text = new();
        LoadRun.Write(results, text);
        Assert.Contains($"{NativeMachine.Describe()}: Linux {KtlsPlatform.KernelRelease}, {results.OpenSsl}, {results.Runtime}\n", text.ToString(), StringComparison.Ordinal);
    }

    /// <summary>A child with both ends or with HttpClient alone is warm once and measures repeatedly.</summary>
    [Theory]
    [Trait("loop", "outer")]
    [MemberData(nameof(Children))]
    public async Task A_child_measures_repeatedly(string row, string mode)
    {
        ServerTests.SkipWithout("nginx");
        await using ChildSubject subject = await ChildSubject.StartAsync(row, mode, s_length, TestContext.Current.CancellationToken);
        for (int i = 0; i < 2; i++)
        {
            WallMeasurement measured = await subject.MeasureAsync(TestContext.Current.CancellationToken);
            Assert.Equal((row, mode), (measured.Scenario, measured.Mode));
            Assert.InRange(measured.PerSecond, 1, double.MaxValue);
        }
    }

    [Fact]
    public void Every_row_of_HttpClient_alone_is_among_the_rows_of_load() =>
        Assert.Subset(LoadRun.Rows.ToHashSet(), ClientRow.All.Select(row => row.Name).ToHashSet());

    [Fact]
    public async Task A_server_in_another_mode_is_refused()
    {
        using Servers.ServedFiles files = new(1);
        using Servers.ServerProcess server = await Servers.ServerProcess.StartAsync(ModeTable.Stock, files, upstream: null);
        await GeneratorServer.VerifyAsync(ModeTable.Stock, server, files);
        BenchFailedException refusal = await Assert.ThrowsAsync<BenchFailedException>(() => GeneratorServer.VerifyAsync(ModeTable.Direct, server, files));
        Assert.Equal("direct: a connection is 'stock', not 'OpenSsl OpenSsl'", refusal.Message);
    }

    [Fact]
    public void Wrk_s_report_is_read() => Assert.Equal(
        new GeneratorReport(1000, 500, TimeSpan.FromMilliseconds(2), TimeSpan.FromMilliseconds(1.5), TimeSpan.FromMilliseconds(9)),
        new Wrk().Read("Running 2s test\nreport: 1000 2000000 0 2000.000000 1500.000000 9000.000000\n", ""));

    [Theory]
    [InlineData("Running 2s test\n", "wrk wrote no report")]
    [InlineData("report: 1000 2000000 3 2000.0 1500.0 9000.0\n", "wrk had 3 errors")]
    public void Wrk_s_failure_fails(string output, string message) => AssertFails(new Wrk(), output, message);

    [Fact]
    public void H2load_s_report_is_read()
    {
        DirectoryInfo directory = Directory.CreateTempSubdirectory();
        File.WriteAllText(Path.Combine(directory.FullName, "log"), "1\t200\t3000\n2\t200\t1000\n3\t200\t2000\n");
        Assert.Equal(
            new GeneratorReport(3, 1.5, TimeSpan.FromMilliseconds(2), TimeSpan.FromMilliseconds(2), TimeSpan.FromMilliseconds(3)),
            new H2Load().Read(H2LoadReport, directory.FullName));
        directory.Delete(recursive: true);
    }

    [Fact]
    public void H2load_s_failures_fail()
    {
        AssertFails(new H2Load(), "", "h2load wrote no report of HTTP/2");
        AssertFails(new H2Load(), H2LoadReport.Replace("h2\n", "http/1.1\n", StringComparison.Ordinal), "h2load wrote no report of HTTP/2");
        AssertFails(new H2Load(), H2LoadReport.Replace("3 succeeded", "2 succeeded", StringComparison.Ordinal), "h2load had errors");
    }

    [Fact]
    public void Hey_s_report_is_read() => Assert.Equal(
        new GeneratorReport(2, 4, TimeSpan.FromMilliseconds(250), TimeSpan.FromMilliseconds(200), TimeSpan.FromMilliseconds(300)),
        new Hey().Read($"{HeyHeader}0.3000,0.1,0,0,0,0,200,0.1000\n0.2000,0,0,0,0,0,200,0.4000\n", ""));

    [Theory]
    [InlineData("0.3,0.1,0,0,0,0,200,0.1\n0.2,0,0,0,0,0,503,0.4\n", "hey had an error: 0.2,0,0,0,0,0,503,0.4")]
    [InlineData("", "hey had an error: response-time")]
    public void Hey_s_failure_fails(string lines, string message) => AssertFails(new Hey(), HeyHeader + lines, message);

    private static void AssertFails(Generator generator, string output, string message) => Assert.StartsWith(
        message, Assert.Throws<BenchFailedException>(() => generator.Read(output, "")).Message, StringComparison.Ordinal);
}

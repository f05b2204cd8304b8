using System.Text.Json.Nodes;
using KernelTls.Lab.Rehearsal;
using KernelTls.Lab.Report;
using KernelTls.Tests;

namespace KernelTls.Lab.Tests;

/// <summary>Every scenario of benchmarks/crank, by the command lines that crank would make of it.</summary>
public class ScenarioTests
{
    /// <summary>TlsTxSw of a process that finds out what the kernel takes (ARCHITECTURE.md).</summary>
    private const long Trials = 11;

    /// <summary>An emulated machine takes long to start two programs: there one of each kind, or all by KERNELTLS_SCENARIOS=all.</summary>
    private static readonly string[] s_ofEachKind = ["h1-get-close", "h2-post-64k", "h1-static-1m", "read-write", "handshake"];

    public static TheoryData<TlsMode, string> Every => Modes.CostlyWith<string>(
        Cell.IsLab && Environment.GetEnvironmentVariable("KERNELTLS_SCENARIOS") != "all" ? s_ofEachKind : CrankFile.Lab.Scenarios.Keys);

    /// <summary>One end only; both ends are <see cref="Every"/>.</summary>
    public static TheoryData<string> OneSided =>
        [.. Modes.Costly.Where(m => m != TlsMode.Stock).SelectMany(m => new[] { $"{ProfileOf(m)}-client", $"{ProfileOf(m)}-server" })];

    [Theory]
    [MemberData(nameof(Every))]
    public async Task It_runs_and_says_what_its_connections_had(TlsMode mode, string scenario) =>
        await RunAsync(scenario, ProfileOf(mode), mode, mode);

    [Theory]
    [MemberData(nameof(OneSided))]
    public async Task One_end_alone_can_have_a_mode(string profile)
    {
        TlsMode mode = profile.StartsWith("ktls", StringComparison.Ordinal) ? TlsMode.Kernel : TlsMode.DirectOpenSsl;
        bool isServer = profile.EndsWith("server", StringComparison.Ordinal);

        await RunAsync("h1-get-64k", profile, isServer ? mode : TlsMode.Stock, isServer ? TlsMode.Stock : mode);
    }

    private static async Task RunAsync(string scenario, string profile, TlsMode ofServer, TlsMode ofClient)
    {
        // This process's own trials are not to be counted.
        _ = KtlsPlatform.IsSupported;
        TlsStatistics before = ReadStatistics();
        using LabProcess server = Scene.Start(Scene.ServerOf(scenario, profile));
        int port = await server.ListenAsync(Scene.Limit);
        TlsStatistics serverReady = ReadStatistics();
        using LabProcess client = Scene.Start(Scene.ClientOf(scenario, profile, port));
        JsonObject clientSays = await client.ResultsAsync(Scene.Limit);
        server.Terminate();
        JsonObject serverSays = await server.ResultsAsync(Scene.Limit);

        AssertFigures(scenario, clientSays);
        Assert.Equal(Expected(ofClient), Scene.Text(clientSays, Metrics.Offload));
        Assert.Equal(Expected(ofServer), Scene.Text(serverSays, Metrics.Offload));
        Assert.StartsWith("Tls13 ", Scene.Text(clientSays, Metrics.Negotiated), StringComparison.Ordinal);
        Assert.Equal(Scene.Text(clientSays, Metrics.Negotiated), Scene.Text(serverSays, Metrics.Negotiated));

        // HttpClient opens connections that nobody needs in the end: one may be half made by then, for one end and not the other.
        long ofClientAlone = (long)Scene.Number(clientSays, Metrics.Connections);
        long ofServerAlone = (long)Scene.Number(serverSays, Metrics.Connections);
        long surplus = scenario is ['h', '1' or '2', ..] ? Scene.Concurrency : 0;
        Assert.InRange(ofServerAlone, ofClientAlone - surplus, ofClientAlone + surplus);

        // The kernel's own count: the sockets of the connections, and those of each process's trials at its start.
        long perProcess = ofServer == TlsMode.Kernel ? serverReady.SendSoftware - before.SendSoftware : Trials;
        int ends = new[] { ofServer, ofClient }.Count(mode => mode == TlsMode.Kernel);
        TlsStatistics after = ReadStatistics();
        Assert.InRange(
            after.SendSoftware - before.SendSoftware,
            ends * (perProcess + Math.Min(ofClientAlone, ofServerAlone)),
            ends * (perProcess + Math.Max(ofClientAlone, ofServerAlone)));
        Assert.Equal(before.DecryptError, after.DecryptError);
    }

    private static void AssertFigures(string scenario, JsonObject says)
    {
        switch (scenario)
        {
            case "read-write":
                Assert.True(Scene.Number(says, Metrics.BytesRead) > 0 && Scene.Number(says, Metrics.BytesWritten) > 0, $"{says}");
                break;
            case "client-read":
                Assert.True(Scene.Number(says, Metrics.BytesRead) > 0 && Scene.Number(says, Metrics.BytesWritten) == 0, $"{says}");
                break;
            case "client-write":
                Assert.True(Scene.Number(says, Metrics.BytesRead) == 0 && Scene.Number(says, Metrics.BytesWritten) > 0, $"{says}");
                break;
            case "handshake":
                Assert.True(Scene.Number(says, Metrics.Handshakes) > 0, $"{says}");
                AssertOrdered(says, Metrics.Handshake);
                break;
            case "rps":
                Assert.True(Scene.Number(says, Metrics.RoundTrips) > 0, $"{says}");
                break;
            default:
                Assert.True(Scene.Number(says, Metrics.Requests) > 0 && Scene.Number(says, Metrics.RequestsPerSecond) > 0, $"{says}");
                Assert.Equal(0, Scene.Number(says, Metrics.BadResponses) + Scene.Number(says, Metrics.Errors));
                Assert.All([Metrics.Headers, Metrics.ContentStart, Metrics.ContentEnd], d => AssertOrdered(says, d));
                break;
        }
    }

    private static void AssertOrdered(JsonObject says, Distribution distribution)
    {
        double[] values = [.. distribution.Metrics.Select(m => Scene.Number(says, m))];
        Assert.Equal(values.Order(), values);
        Assert.True(values[0] > 0, $"{says}");
    }

    private static string Expected(TlsMode mode) => mode switch
    {
        TlsMode.DirectOpenSsl => "send=openssl (DirectOpenSsl) receive=openssl (DirectOpenSsl)",
        TlsMode.Kernel when KtlsPlatform.OpenSslVersion < new Version(3, 2) => "send=kernel receive=openssl (OpenSslTooOld)",
        TlsMode.Kernel => "send=kernel receive=kernel",
        _ => "stock",
    };

    private static string ProfileOf(TlsMode mode) => mode switch
    {
        TlsMode.DirectOpenSsl => "directopenssl",
        TlsMode.Kernel => "ktls",
        _ => "standard",
    };

    private static TlsStatistics ReadStatistics() => File.Exists(TlsStat.Path) ? TlsStatistics.Read() : default;
}

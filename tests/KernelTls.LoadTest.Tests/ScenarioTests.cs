using System.Text.Json.Nodes;
using KernelTls.LoadTest.Rehearsal;
using KernelTls.LoadTest.Report;
using KernelTls.Tests;

namespace KernelTls.LoadTest.Tests;

/// <summary>Tests every scenario of benchmarks/crank with the command lines that crank would create.</summary>
[Trait("cell", "programs")]
[Trait("loop", "outer")]
public class ScenarioTests
{
    /// <summary>The TlsTxSw count of a process that determines what the kernel accepts (docs/architecture/handshake.md).</summary>
    private const long Trials = 11;

    /// <summary>
    /// The scenarios on emulated machines, which take long to start two programs: one of each kind, or all with
    /// KERNELTLS_SCENARIOS=all.
    /// </summary>
    private static readonly string[] s_ofEachKind = ["h1-get-close", "h2-post-64k", "h1-static-1m", "h2-grpc-unary", "wrk-get-0", "h2load-get-64k", "read-write", "handshake"];

    public static TheoryData<TlsMode, string> Every => Modes.CostlyWith<string>(
        Cell.IsLab && Environment.GetEnvironmentVariable("KERNELTLS_SCENARIOS") != "all" ? s_ofEachKind : CrankFile.LoadTest.Scenarios.Keys);

    /// <summary>Gets the profiles for one end only. <see cref="Every"/> covers both ends.</summary>
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

    /// <summary>
    /// A setting that is on leaves the stock mode without using the kernel. Both ends report the same.
    /// </summary>
    [Theory]
    [InlineData("h1-get-0", "KtlsOptions__RecordLimit=8192", KtlsFallbackReason.NotEnabled)]
    [InlineData("h2-get-0", "DOTNET_SYSTEM_NET_SECURITY_KTLS=0", KtlsFallbackReason.DisabledByToggle)]
    [InlineData("rps", "DOTNET_SYSTEM_NET_SECURITY_KTLS=0", KtlsFallbackReason.DisabledByToggle)]
    [InlineData("h1-get-0", "DOTNET_SYSTEM_NET_SECURITY_KTLS=1", null)]
    [InlineData("rps", "DOTNET_SYSTEM_NET_SECURITY_KTLS=1", null)]
    public async Task After_a_fallback_both_ends_say_the_same(string scenario, string variable, KtlsFallbackReason? reason)
    {
        string[] pair = variable.Split('=');
        Dictionary<string, string> environment = new() { [pair[0]] = pair[1] };
        using LoadTestProcess server = LoadTestProcess.Start(Scene.Program, null, environment, Scene.ServerOf(scenario, "standard").Arguments);
        int port = await server.ListenAsync(Scene.Limit);
        using LoadTestProcess client = LoadTestProcess.Start(Scene.Program, null, environment, Scene.ClientOf(scenario, "standard", port).Arguments);
        string clientSays = Scene.Text(await client.ResultsAsync(Scene.Limit), Metrics.Offload);
        server.Terminate();
        string serverSays = Scene.Text(await server.ResultsAsync(Scene.Limit), Metrics.Offload);

        // Without a specific reason the machine decides whether the kernel is used.
        KtlsFallbackReason expected = reason ?? KtlsPlatform.Probe().NotSupportedReason;
        Assert.Equal(
            expected == KtlsFallbackReason.None ? Expected(TlsMode.Kernel) : $"send=managed ({expected}) receive=managed ({expected})",
            clientSays);
        Assert.Equal(clientSays, serverSays);
    }

    private static async Task RunAsync(string scenario, string profile, TlsMode ofServer, TlsMode ofClient)
    {
        // This process's own probe must not be counted.
        _ = KtlsPlatform.Probe().IsSupported;
        TlsStatistics before = ReadStatistics();
        using LoadTestProcess server = Scene.Start(Scene.ServerOf(scenario, profile));
        int port = await server.ListenAsync(Scene.Limit);
        TlsStatistics serverReady = ReadStatistics();
        using LoadTestProcess client = Scene.Start(Scene.ClientOf(scenario, profile, port));
        JsonObject clientSays = await client.ResultsAsync(Scene.Limit);
        server.Terminate();
        JsonObject serverSays = await server.ResultsAsync(Scene.Limit);

        AssertFigures(scenario, clientSays);
        Assert.Equal(Expected(ofServer), Scene.Text(serverSays, Metrics.Offload));
        if (clientSays["Measurements"]!.AsArray().All(m => (string)m!["Name"]! != Metrics.Offload.Name))
        {
            // A generator says nothing about TLS. wrk opens one connection more, which it closes again.
            long expected = Convert.ToInt64(Scene.ClientOf(scenario, profile, port).Variables["connections"], null);
            Assert.InRange((long)Scene.Number(serverSays, Metrics.Connections), expected, expected + 1);
            return;
        }

        Assert.Equal(Expected(ofClient), Scene.Text(clientSays, Metrics.Offload));
        Assert.StartsWith("Tls13 ", Scene.Text(clientSays, Metrics.Negotiated), StringComparison.Ordinal);
        Assert.Equal(Scene.Text(clientSays, Metrics.Negotiated), Scene.Text(serverSays, Metrics.Negotiated));

        // HttpClient may open connections that it does not need in the end. One may be incomplete, for one end and not
        // the other. So may the last handshake, which the client counts before the server does: the server is ended then.
        long ofClientAlone = (long)Scene.Number(clientSays, Metrics.Connections);
        long ofServerAlone = (long)Scene.Number(serverSays, Metrics.Connections);
        long surplus = scenario.StartsWith("h1", StringComparison.Ordinal) ? Scene.Concurrency : scenario == "handshake" ? 1 : 0;
        if (scenario.StartsWith("h2", StringComparison.Ordinal))
        {
            Assert.Equal(scenario.EndsWith("10x10", StringComparison.Ordinal) ? 10 : 1, ofClientAlone);
        }
        Assert.InRange(ofServerAlone, ofClientAlone - surplus, ofClientAlone + surplus);

        // The kernel's own count: the sockets of the connections, among them the one by which a stream client asks for failures, and those of
        // each process's probe at its start.
        int asking = scenario[0] is 'h' && scenario != "handshake" ? 0 : 1;
        long perProcess = ofServer == TlsMode.Kernel ? serverReady.SendSoftware - before.SendSoftware : Trials;
        int ends = new[] { ofServer, ofClient }.Count(mode => mode == TlsMode.Kernel);
        TlsStatistics after = ReadStatistics();
        Assert.InRange(
            after.SendSoftware - before.SendSoftware,
            ends * (perProcess + asking + Math.Min(ofClientAlone, ofServerAlone)),
            ends * (perProcess + asking + Math.Max(ofClientAlone, ofServerAlone)));
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
                Distribution[] known = scenario[0] is 'w' || scenario.StartsWith("h2load", StringComparison.Ordinal)
                    ? [Metrics.ContentEnd]
                    : [Metrics.Headers, Metrics.ContentStart, Metrics.ContentEnd];
                Assert.All(known, d => AssertOrdered(says, d));
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
        TlsMode.DirectOpenSsl => "send=openssl (NotEnabled) receive=openssl (NotEnabled)",
        TlsMode.Kernel when KtlsPlatform.Probe().OpenSslVersion < new Version(3, 2) => "send=kernel receive=openssl (OpenSslTooOld)",
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

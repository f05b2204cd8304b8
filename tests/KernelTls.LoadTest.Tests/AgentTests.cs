using System.Text.Json.Nodes;
using KernelTls.LoadTest.Rehearsal;
using KernelTls.LoadTest.Report;
using KernelTls.Tests;

namespace KernelTls.LoadTest.Tests;

/// <summary>Tests what crank's agent receives, by events and by standard output.</summary>
[Trait("loop", "outer")]
public class AgentTests
{
    private const string Suspend = "DOTNET_DefaultDiagnosticPortSuspend";

    // The names in Microsoft.Crank.Models.Operation.
    private static readonly string[] s_operations = ["First", "Last", "Avg", "Sum", "Median", "Max", "Min", "Count", "All", "Delta"];

    private static readonly string[] s_points = ["min", "p50", "p75", "p90", "p99", "max"];

    private static readonly string[] s_ofConnections = ["tls/connections", "tls/connections/kernel", "tls/connections/other", "tls/offload", "tls/negotiated"];

    private static readonly string[] s_ofMachine = ["env/processorcount", "env/kernel", "env/openssl", "env/runtime"];

    private static readonly string[] s_ofHttp =
    [
        "http/requests", "http/rps/mean", "http/content/mean", "process/cpu/request", "http/badresponses", "http/errors",
        .. from time in new[] { "http/headers", "http/contentstart", "http/contentend" } from point in s_points select $"{time}/{point}",
    ];

    [Fact]
    public async Task A_client_s_figures_arrive_with_what_they_mean()
    {
        using LoadTestProcess server = Scene.Start(Scene.ServerOf("h1-get-0", "standard"));
        int port = await server.ListenAsync(Scene.Limit);
        using LoadTestProcess client = LoadTestProcess.Start(
            Scene.Program,
            null,
            new Dictionary<string, string> { [Suspend] = "1" },
            Scene.ClientOf("h1-get-0", "standard", port).Arguments);
        using Agent agent = await Agent.AttachAsync(client.Id, isSuspended: true);
        Assert.Equal(0, await client.ExitAsync(Scene.Limit));
        await agent.EndAsync();

        string[] expected = [.. s_ofHttp, .. s_ofConnections, .. s_ofMachine];
        Assert.Equal(expected, agent.Heard);
        Assert.Empty(agent.Unexplained);
        Assert.Equal(expected.Order(), agent.Metadata.Keys.Order());
        Assert.All(agent.Metadata.Values, m => Assert.All(m[..2], operation => Assert.Contains(operation, s_operations)));
        Assert.All(agent.Metadata.Values, m => Assert.All(m[2..4], text => Assert.NotEmpty(text)));
        Assert.All(agent.Metadata, m => Assert.Equal(agent.Measurements[m.Key] is string, m.Value[4].Length == 0));
        Assert.Equal(["Sum", "Sum", "Requests", "Requests that were answered", "n0"], agent.Metadata["http/requests"]);
        Assert.Equal("Min", agent.Metadata["http/headers/min"][0]);
        Assert.Equal("Max", agent.Metadata["http/headers/p99"][0]);
        Assert.InRange(Assert.IsType<long>(agent.Measurements["http/requests"]), 1, long.MaxValue);
        Assert.InRange(Assert.IsType<double>(agent.Measurements["http/rps/mean"]), double.Epsilon, double.MaxValue);
        Assert.Equal(0L, agent.Measurements["http/errors"]);
        Assert.Equal("stock", agent.Measurements["tls/offload"]);

        // An agent adds up what it receives twice.
        Assert.DoesNotContain(Results.Start, client.Said, StringComparison.Ordinal);
    }

    [Fact]
    public async Task Where_nobody_listens_standard_output_has_the_same()
    {
        using LoadTestProcess server = Scene.Start(Scene.ServerOf("h1-get-0", "standard"));
        int port = await server.ListenAsync(Scene.Limit);
        using LoadTestProcess client = Scene.Start(Scene.ClientOf("h1-get-0", "standard", port));
        JsonObject said = await client.ResultsAsync(Scene.Limit);

        string[] expected = [.. s_ofHttp, .. s_ofConnections, .. s_ofMachine];
        Assert.Equal(["Metadata", "Measurements"], said.Select(p => p.Key));
        Assert.Equal(expected, said["Metadata"]!.AsArray().Select(m => (string)m!["Name"]!));
        Assert.Equal(expected, said["Measurements"]!.AsArray().Select(m => (string)m!["Name"]!));
        Assert.All(said["Metadata"]!.AsArray(), m => Assert.Equal(
            ["Source", "Name", "Aggregate", "Reduce", "Format", "ShortDescription", "LongDescription"], m!.AsObject().Select(p => p.Key)));
        Assert.All(said["Measurements"]!.AsArray(), m => Assert.True((DateTime)m!["Timestamp"]! <= DateTime.UtcNow));

        // The agent searches for the markers on separate lines.
        string[] lines = client.Said.Split('\n');
        Assert.Equal(Array.IndexOf(lines, Results.Start) + 2, Array.IndexOf(lines, Results.End));
    }

    /// <summary>The agent stops listening before it stops the server, so results at the end would be lost.</summary>
    [Theory]
    [InlineData("h2-get-0", "tls/connections tls/connections/kernel tls/connections/other tls/offload tls/negotiated")]
    [InlineData("rps", "sslstream/errors tls/connections tls/connections/kernel tls/connections/other tls/offload tls/negotiated")]
    public async Task A_server_tells_while_it_runs(string scenario, string first)
    {
        using LoadTestProcess server = Scene.Start(Scene.ServerOf(scenario, "standard"));
        int port = await server.ListenAsync(Scene.Limit);
        using Agent agent = await Agent.AttachAsync(server.Id, isSuspended: false);
        await agent.UntilAsync(() => agent.Heard.Contains("tls/connections"), "the server's first words");
        using LoadTestProcess client = Scene.Start(Scene.ClientOf(scenario, "standard", port));
        long connections = (long)Scene.Number(await client.ResultsAsync(Scene.Limit), Metrics.Connections);
        await agent.UntilAsync(() => (long)agent.Measurements["tls/connections"] == connections, $"{connections} connections");
        await agent.DetachAsync();
        server.Terminate();

        Assert.Equal(0, await server.ExitAsync(Scene.Limit));
        string[] expected = [.. first.Split(' '), .. s_ofMachine];
        Assert.Equal(expected.Order(), agent.Metadata.Keys.Where(IsAlwaysTold).Order());
        Assert.Equal(expected.Order(), agent.Measurements.Keys.Where(IsAlwaysTold).Order());
        Assert.Empty(agent.Unexplained);
        Assert.Equal("stock", agent.Measurements["tls/offload"]);
        Assert.Equal("Last", agent.Metadata["tls/offload"][0]);
        Assert.DoesNotContain(Results.Start, server.Said, StringComparison.Ordinal);

        // A run of less than two seconds has no processor time.
        static bool IsAlwaysTold(string name) => !name.StartsWith("process/cpu/", StringComparison.Ordinal);
    }

    /// <summary>The second listener has received nothing before.</summary>
    [Fact]
    public async Task A_server_explains_itself_to_every_listener()
    {
        using LoadTestProcess server = Scene.Start(Scene.ServerOf("rps", "standard"));
        int port = await server.ListenAsync(Scene.Limit);
        for (int listener = 1; listener <= 2; listener++)
        {
            using Agent agent = await Agent.AttachAsync(server.Id, isSuspended: false);
            using LoadTestProcess client = Scene.Start(Scene.ClientOf("rps", "standard", port));
            _ = await client.ResultsAsync(Scene.Limit);
            await agent.UntilAsync(
                () => agent.Measurements.TryGetValue("tls/connections", out object? n) && (long)n > 0, $"listener {listener}'s connections");
            await agent.DetachAsync();
            Assert.Empty(agent.Unexplained);
        }
    }
}

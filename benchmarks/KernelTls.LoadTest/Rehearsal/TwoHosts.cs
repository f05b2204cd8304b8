using System.Diagnostics;
using System.Globalization;
using System.Reflection;
using System.Text.Json.Nodes;
using KernelTls.LoadTest.Report;
using Spectre.Console;

namespace KernelTls.LoadTest.Rehearsal;

/// <summary>
/// Connects two network namespaces with a veth pair, which delays segments and sends none that is larger than its MTU.
/// It shows that client and server also work over a link. It cannot show how fast they are.
/// </summary>
internal sealed class TwoHosts
{
    private const string ServerAddress = "10.99.0.1";
    private const string ClientAddress = "10.99.0.2";

    private static readonly TimeSpan s_patience = TimeSpan.FromMinutes(3);

    private readonly RehearsalOptions _options;
    private readonly string _server = $"ktls-server-{Environment.ProcessId}";
    private readonly string _client = $"ktls-client-{Environment.ProcessId}";
    private readonly Table _table = new Table().Border(TableBorder.Markdown).AddColumns(
        "MTU", "scenario", "mode", "result", "p99 ms", "packets per 64 KiB", "client", "server");

    public TwoHosts(RehearsalOptions options) => _options = options;

    public async Task RunAsync(CancellationToken cancellationToken)
    {
        await ConnectAsync(cancellationToken);
        try
        {
            foreach (int mtu in _options.Mtus)
            {
                await SetLinkAsync(mtu, cancellationToken);
                foreach (RehearsalScenario scenario in RehearsalScenario.All.Where(s => _options.Scenarios.Contains(s.Name)))
                {
                    foreach (RehearsalMode mode in RehearsalMode.All.Where(m => _options.Modes.Contains(m.Name)))
                    {
                        await Console.Out.WriteLineAsync($"-- MTU {mtu}, {scenario.Name}, {mode.Name}");
                        await MeetAsync(mtu, scenario, mode, cancellationToken);
                    }
                }
            }
        }
        finally
        {
            await RemoveAsync();
        }

        // Use a wide console, so that a log contains no wrapped lines.
        IAnsiConsole console = AnsiConsole.Console;
        console.Profile.Width = 200;
        console.Write(_table);
        await Console.Out.WriteLineAsync(
            $"The link: {_options.DelayMilliseconds} ms and {_options.LossPercent} % loss each way, segments of its MTU. On one "
            + "machine, and the more so on an emulated one, these rates and times are no measurement: they show that it works.");
    }

    private async Task ConnectAsync(CancellationToken cancellationToken)
    {
        await IpAsync(cancellationToken, "netns", "add", _server);
        try
        {
            await IpAsync(cancellationToken, "netns", "add", _client);
            await IpAsync(
                cancellationToken, "link", "add", "link0", "netns", _server, "type", "veth", "peer", "name", "link0", "netns", _client);
            foreach ((string host, string address) in new[] { (_server, ServerAddress), (_client, ClientAddress) })
            {
                await IpAsync(cancellationToken, "-netns", host, "address", "add", $"{address}/24", "dev", "link0");
                await IpAsync(cancellationToken, "-netns", host, "link", "set", "lo", "up");

                // Without this option, the kernel passes 64 KiB at a time through a veth, regardless of the MTU.
                await IpAsync(cancellationToken, "-netns", host, "link", "set", "link0", "gso_max_segs", "1");
                await IpAsync(cancellationToken, "-netns", host, "link", "set", "link0", "up");
            }
        }
        catch
        {
            await RemoveAsync();
            throw;
        }
    }

    private async Task SetLinkAsync(int mtu, CancellationToken cancellationToken)
    {
        foreach (string host in new[] { _server, _client })
        {
            await IpAsync(cancellationToken, "-netns", host, "link", "set", "link0", "mtu", $"{mtu}");
            List<string> netem = ["-netns", host, "qdisc", "replace", "dev", "link0", "root", "netem", "limit", "100000"];
            netem.AddRange(["delay", $"{_options.DelayMilliseconds}ms"]);
            netem.AddRange(["loss", _options.LossPercent.ToString(CultureInfo.InvariantCulture) + "%"]);
            await RunProgramAsync("tc", netem, cancellationToken);
        }
    }

    private async Task MeetAsync(int mtu, RehearsalScenario scenario, RehearsalMode mode, CancellationToken cancellationToken)
    {
        string program = Assembly.GetExecutingAssembly().Location;
        using LoadTestProcess server = LoadTestProcess.Start(
            program, _server, mode.Environment, Words($"{scenario.Protocol}-server --serverAddress {ServerAddress} {scenario.Server}"));
        await server.ListenAsync(s_patience);
        (long bytes, long packets) = await SentAsync(cancellationToken);
        using LoadTestProcess client = LoadTestProcess.Start(
            program,
            _client,
            mode.Environment,
            Words(string.Create(
                CultureInfo.InvariantCulture,
                $"{scenario.Protocol}-client --serverAddress {ServerAddress} {scenario.Client} --warmup {_options.Warmup} --duration {_options.Duration}")
                .Replace("{n}", $"{_options.Concurrency}", StringComparison.Ordinal)));
        TimeSpan limit = TimeSpan.FromSeconds(_options.Warmup + _options.Duration) + s_patience;
        JsonObject ofClient = await client.ResultsAsync(limit).WaitAsync(cancellationToken);
        (long bytesAfter, long packetsAfter) = await SentAsync(cancellationToken);
        server.Terminate();
        JsonObject ofServer = await server.ResultsAsync(s_patience).WaitAsync(cancellationToken);

        double perBlock = 65_536.0 * (packetsAfter - packets) / Math.Max(1, bytesAfter - bytes);
        _table.AddRow(
            $"{mtu}",
            scenario.Name,
            mode.Name,
            Markup.Escape($"{Number(ofClient, scenario.Rate, "n0")} {scenario.Rate.ShortDescription}"),
            scenario.Late is null ? "" : Number(ofClient, scenario.Late, "n1"),
            perBlock.ToString("n0", CultureInfo.InvariantCulture),
            Markup.Escape((string)LoadTestProcess.ValueOf(ofClient, Metrics.Offload)!),
            Markup.Escape((string)LoadTestProcess.ValueOf(ofServer, Metrics.Offload)!));
    }

    private static string Number(JsonObject results, Metric metric, string format) =>
        ((double)LoadTestProcess.ValueOf(results, metric)!).ToString(format, CultureInfo.InvariantCulture);

    /// <summary>Returns the traffic that the server's end of the link has sent.</summary>
    private async Task<(long Bytes, long Packets)> SentAsync(CancellationToken cancellationToken)
    {
        string json = await RunProgramAsync("ip", ["-netns", _server, "-json", "-statistics", "link", "show", "link0"], cancellationToken);
        JsonNode sent = JsonNode.Parse(json)![0]!["stats64"]!["tx"]!;
        return ((long)sent["bytes"]!, (long)sent["packets"]!);
    }

    private async Task RemoveAsync()
    {
        foreach (string host in new[] { _server, _client })
        {
            try
            {
                await IpAsync(CancellationToken.None, "netns", "delete", host);
            }
            catch (LoadTestFailedException e)
            {
                await Console.Error.WriteLineAsync(e.Message);
            }
        }
    }

    private static string[] Words(string line) => line.Split(' ', StringSplitOptions.RemoveEmptyEntries);

    private static Task<string> IpAsync(CancellationToken cancellationToken, params string[] arguments) =>
        RunProgramAsync("ip", arguments, cancellationToken);

    private static async Task<string> RunProgramAsync(string program, IEnumerable<string> arguments, CancellationToken cancellationToken)
    {
        ProcessStartInfo start = new(program, arguments) { RedirectStandardOutput = true, RedirectStandardError = true };
        using Process process = Process.Start(start)!;
        Task<string> output = process.StandardOutput.ReadToEndAsync(cancellationToken);
        Task<string> errors = process.StandardError.ReadToEndAsync(cancellationToken);
        await process.WaitForExitAsync(cancellationToken);
        return process.ExitCode == 0
            ? await output
            : throw new LoadTestFailedException($"{program} {string.Join(' ', start.ArgumentList)}: {(await errors).Trim()}");
    }
}

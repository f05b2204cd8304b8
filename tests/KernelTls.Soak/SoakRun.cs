using System.Diagnostics;
using System.Globalization;
using System.Net;
using System.Security.Authentication;

namespace KernelTls.Soak;

/// <summary>
/// Performs a run in rounds. Between them the clients rest, and the resources of the process are measured. These must
/// not depend on the number of operations.
/// </summary>
internal sealed class SoakRun(SoakOptions options) : IDisposable
{
    private const int FewestRounds = 9;

    /// <summary>The time that connections may take to end when their clients rest.</summary>
    private static readonly TimeSpan s_restLimit = TimeSpan.FromSeconds(30);

    private readonly SoakContext _context = new(options);
    private readonly List<Footprint> _footprints = [];
    private readonly Stopwatch _clock = new();

    /// <summary>Runs to the end and prints the verdict.</summary>
    /// <returns>The exit code: 0 if everything holds.</returns>
    public async Task<int> RunAsync()
    {
        if (options.Mode == SoakMode.Kernel && !KtlsPlatform.Probe().IsSupported)
        {
            Console.Error.WriteLine($"soak: no kernel TLS here: {KtlsPlatform.Probe().NotSupportedReason} {KtlsPlatform.Probe().NotSupportedDetail}");
            return 2;
        }

        Console.WriteLine($"soak: {options.Mode}, {options.Duration.TotalMinutes} min, --seed {options.Seed}");
        await using (WebServer web = await WebServer.StartAsync(_context))
        {
            await using StreamServer streams = new(_context);
            SoakClient[] clients = CreateClients();
            TimeSpan length = TimeSpan.FromSeconds(Math.Clamp(options.Duration.TotalSeconds / FewestRounds, 3, 60));
            int rounds = Math.Max(FewestRounds, (int)Math.Round(options.Duration / length));
            _clock.Start();
            for (int round = 0; round < rounds; round++)
            {
                await RunRoundAsync(clients, length);
            }

            foreach (SoakClient client in clients)
            {
                await client.DisposeAsync();
            }
        }

        return new Verdict(_footprints, _context.Findings, _context.Tally).Print() ? 0 : 1;
    }

    public void Dispose() => _context.Dispose();

    private SoakClient[] CreateClients()
    {
        int next = options.Seed;
        SoakClient[] kept =
        [
            new StreamSoakClient(_context, SslProtocols.Tls12, next++),
            new StreamSoakClient(_context, SslProtocols.Tls13, next++),
            new HttpSoakClient(_context, HttpVersion.Version11, keeps: true, next++),
            new HttpSoakClient(_context, HttpVersion.Version20, keeps: true, next++),
        ];
        Func<int, SoakClient>[] others =
        [
            seed => new HttpSoakClient(_context, HttpVersion.Version11, keeps: false, seed),
            seed => new HttpSoakClient(_context, HttpVersion.Version20, keeps: false, seed),
            seed => new CallSoakClient(_context, seed),
            seed => new StreamSoakClient(_context, SslProtocols.None, seed),
            seed => new ChaosSoakClient(_context, seed),
        ];
        return [.. kept, .. others.Concat(others).Select(create => create(next++))];
    }

    private async Task RunRoundAsync(SoakClient[] clients, TimeSpan length)
    {
        using CancellationTokenSource over = new(length);
        await Task.WhenAll(clients.Select(client => Task.Run(() => client.RunAsync(over.Token))));
        bool counts = options.Mode != SoakMode.Stock;
        int connections = counts ? 2 * clients.Sum(client => client.KeptConnections) : 0;
        Footprint footprint = await Footprint.MeasureAsync(_context.Tally.Operations, connections, s_restLimit);
        _footprints.Add(footprint);
        Console.WriteLine(string.Create(
            CultureInfo.InvariantCulture,
            $"{_clock.Elapsed:hh\\:mm\\:ss}  {footprint.Operations} operations, {_context.Tally.Bytes >> 20} MiB  "
            + $"descriptors {footprint.Descriptors.Count}  native {footprint.Connections}  "
            + $"kernel {footprint.KernelSending}/{footprint.KernelReceiving}  "
            + $"managed {footprint.Managed / 1024.0 / 1024:0.0} MiB  resident {footprint.Resident / 1024.0 / 1024:0.0} MiB  "
            + $"processor {Environment.CpuUsage.TotalTime.TotalSeconds:0} s"));
    }
}

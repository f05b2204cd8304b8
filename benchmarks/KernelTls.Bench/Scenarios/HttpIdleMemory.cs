using System.Net;
using KernelTls.Bench.Modes;
using KernelTls.Bench.Report;

namespace KernelTls.Bench.Scenarios;

/// <summary>
/// Measures the memory of one end of an open connection between HttpClient and Kestrel. A thousand connections are
/// open, and ten of them are active. The others have served one request each and are idle. Memory is counted as in
/// <see cref="IdleMemory"/>.
/// </summary>
internal static class HttpIdleMemory
{
    private const int Working = 10;
    private const int FirstConnections = 100;
    private const int ConnectionsPerRound = 300;
    private const int Rounds = 3;
    private const int Operations = 500;

    public static async Task<Measurement> MeasureAsync(string name, string mode)
    {
        BenchCertificates certificates = new();
        HttpExchangeKind kind = new(HttpVersion.Version11) { Concurrency = Working };
        await using ConcurrentExchange load = new(ModeTable.Create(mode, certificates, resume: false), certificates, kind, Operations);

        // Costs that only the first connections cause do not count for any connection.
        await load.PrepareAsync();
        await load.GatherAsync(FirstConnections / 2);
        await WorkAsync(load);
        await load.GatherAsync(FirstConnections);
        await WorkAsync(load);

        List<double> resident = [];
        List<double> kernel = [];
        MemoryInUse before = MemoryInUse.Read();
        for (int i = 1; i <= Rounds; i++)
        {
            await load.GatherAsync(FirstConnections + (i * ConnectionsPerRound));
            await WorkAsync(load);
            MemoryInUse after = MemoryInUse.Read();
            resident.Add((after.Resident - before.Resident) / (2.0 * ConnectionsPerRound));
            kernel.Add((after.Kernel - before.Kernel) / (2.0 * ConnectionsPerRound));
            before = after;
        }

        return Measurement.OfMemory(name, mode, resident, kernel);
    }

    private static async Task WorkAsync(ConcurrentExchange load)
    {
        await load.RunAsync(Operations).InTime($"{Operations} requests");
        load.Verify();
        await Task.Delay(Meter.Compilation);
    }
}

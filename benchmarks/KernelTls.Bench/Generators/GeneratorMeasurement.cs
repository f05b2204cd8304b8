using KernelTls.Bench.Servers;
using KernelTls.Bench.Wall;

namespace KernelTls.Bench.Generators;

/// <summary>Measures a server by the wall clock under the load of a program that shares no code with .NET.</summary>
internal static class GeneratorMeasurement
{
    private const int FileSize = 64 * 1024;

    /// <summary>The number of rounds of warm-up after which the measurement begins although methods are still compiled.</summary>
    public const int MostWarmUpRounds = 10;

    private static readonly TimeSpan s_warmUpRound = TimeSpan.FromSeconds(2);

    /// <param name="row">The row.</param>
    /// <param name="mode">The server's mode.</param>
    /// <param name="length">The duration of the measurement, excluding the warm-up.</param>
    /// <param name="cancellationToken">A token that ends the measurement.</param>
    /// <param name="warmUpRounds">The largest number of rounds of warm-up.</param>
    public static async Task<WallMeasurement> MeasureAsync(
        GeneratorRow row, string mode, TimeSpan length, CancellationToken cancellationToken, int warmUpRounds = MostWarmUpRounds)
    {
        using ServedFiles files = new(FileSize);
        using ServerProcess server = await ServerProcess.StartAsync(mode, files, upstream: null);
        await GeneratorServer.VerifyAsync(mode, server, files);
        Uri origin = new($"https://127.0.0.1:{server.Port}");
        await WarmUpAsync(row, server, files, origin, warmUpRounds, cancellationToken);

        TimeSpan before = ProcessClock.Read(server.ProcessId);
        GeneratorReport report = await row.Generator.RunAsync(row, origin, length, cancellationToken);
        TimeSpan processor = ProcessClock.Read(server.ProcessId) - before;
        return new WallMeasurement(
            row.Name,
            mode,
            report.Requests,
            Math.Round(report.PerSecond, 1),
            Math.Round(report.Mean.TotalMicroseconds, 1),
            Math.Round(report.Median.TotalMicroseconds, 1),
            Math.Round(report.Percentile99.TotalMicroseconds, 1),
            Math.Round(processor.TotalSeconds, 3),
            SystemCallsPerOp: null,
            NotCounted: null);
    }

    /// <summary>Generates load until the server's runtime compiles no more methods.</summary>
    private static async Task WarmUpAsync(
        GeneratorRow row, ServerProcess server, ServedFiles files, Uri origin, int rounds, CancellationToken cancellationToken)
    {
        long before = -1;
        for (int round = 0; round < rounds; round++)
        {
            await row.Generator.RunAsync(row, origin, s_warmUpRound, cancellationToken);
            long compiled = await GeneratorServer.CountCompiledMethodsAsync(server, files);
            if (compiled == before)
            {
                return;
            }

            before = compiled;
        }
    }
}

using KernelTls.Bench.Servers;
using KernelTls.Bench.Wall;

namespace KernelTls.Bench.Generators;

/// <summary>Measures a server by the wall clock under the load of a program that shares no code with .NET.</summary>
internal sealed class GeneratorSubject : ILoadSubject
{
    /// <summary>The number of rounds of warm-up after which the measurement begins although methods are still compiled.</summary>
    public const int MostWarmUpRounds = 10;

    private const int FileSize = 64 * 1024;

    private static readonly TimeSpan s_warmUpRound = TimeSpan.FromSeconds(2);

    private readonly GeneratorRow _row;
    private readonly string _mode;
    private readonly TimeSpan _length;
    private readonly ServedFiles _files;
    private readonly ServerProcess _server;
    private readonly Uri _origin;

    private GeneratorSubject(GeneratorRow row, string mode, TimeSpan length, ServedFiles files, ServerProcess server)
    {
        _row = row;
        _mode = mode;
        _length = length;
        _files = files;
        _server = server;
        _origin = new Uri($"https://127.0.0.1:{server.Port}");
    }

    /// <summary>Starts the server and warms it up.</summary>
    /// <param name="row">The row.</param>
    /// <param name="mode">The server's mode.</param>
    /// <param name="length">The duration of each measurement.</param>
    /// <param name="cancellationToken">A token that ends the warm-up.</param>
    /// <param name="warmUpRounds">The largest number of rounds of warm-up.</param>
    public static async Task<GeneratorSubject> StartAsync(
        GeneratorRow row, string mode, TimeSpan length, CancellationToken cancellationToken, int warmUpRounds = MostWarmUpRounds)
    {
        ServedFiles files = new(FileSize);
        GeneratorSubject? subject = null;
        try
        {
            subject = new GeneratorSubject(row, mode, length, files, await ServerProcess.StartAsync(mode, files, upstream: null));
            await GeneratorServer.VerifyAsync(mode, subject._server, files);
            await subject.WarmUpAsync(warmUpRounds, cancellationToken);
            return subject;
        }
        catch
        {
            subject?._server.Dispose();
            files.Dispose();
            throw;
        }
    }

    public async Task<WallMeasurement> MeasureAsync(CancellationToken cancellationToken)
    {
        TimeSpan before = ProcessClock.Read(_server.ProcessId);
        GeneratorReport report = await _row.Generator.RunAsync(_row, _origin, _length, cancellationToken);
        TimeSpan processor = ProcessClock.Read(_server.ProcessId) - before;
        return new WallMeasurement(
            _row.Name,
            _mode,
            report.Requests,
            Math.Round(report.PerSecond, 1),
            Math.Round(report.Mean.TotalMicroseconds, 1),
            Math.Round(report.Median.TotalMicroseconds, 1),
            Math.Round(report.Percentile99.TotalMicroseconds, 1),
            Math.Round(processor.TotalSeconds, 3),
            SystemCallsPerOp: null,
            NotCounted: null);
    }

    public ValueTask DisposeAsync()
    {
        _server.Dispose();
        _files.Dispose();
        return ValueTask.CompletedTask;
    }

    /// <summary>Generates load until the server's runtime compiles no more methods.</summary>
    private async Task WarmUpAsync(int rounds, CancellationToken cancellationToken)
    {
        long before = -1;
        for (int round = 0; round < rounds; round++)
        {
            await _row.Generator.RunAsync(_row, _origin, s_warmUpRound, cancellationToken);
            long compiled = await GeneratorServer.CountCompiledMethodsAsync(_server, _files);
            if (compiled == before)
            {
                return;
            }

            before = compiled;
        }
    }
}

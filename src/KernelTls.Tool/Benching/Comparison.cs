using System.Diagnostics;
using System.Net.Security;
using System.Net.Sockets;
using System.Security.Cryptography.X509Certificates;
using Microsoft.Win32.SafeHandles;

namespace KernelTls.Tool.Benching;

/// <summary>Measures rows in modes: both ends in this process, over loopback, one operation after the other.</summary>
internal sealed class Comparison : IDisposable
{
    private const int FileSize = 4 << 20;
    private readonly Socket _listener = BenchPair.Listen();
    private readonly X509Certificate2 _certificate = SelfSigned.Create();
    private readonly SslStreamCertificateContext _context;
    private readonly SafeFileHandle _file;

    public Comparison()
    {
        _context = SslStreamCertificateContext.Create(_certificate, additionalCertificates: null, offline: true);
        string path = Path.Combine(Path.GetTempPath(), $"ktls-bench-{Environment.ProcessId}-{Guid.NewGuid():N}");
        _file = File.OpenHandle(path, FileMode.CreateNew, FileAccess.ReadWrite, FileShare.Read);

        // Without a name it stays for as long as it is open, and goes with the process, however that ends.
        File.Delete(path);
        RandomAccess.Write(_file, new byte[FileSize], 0);
    }

    /// <param name="row">One of <see cref="BenchRow.Names"/>.</param>
    /// <param name="mode">The streams of both ends.</param>
    /// <param name="time">How long to warm up, and then to measure.</param>
    /// <param name="cancellationToken">Ends it.</param>
    public async Task<Measurement> MeasureAsync(string row, BenchMode mode, TimeSpan time, CancellationToken cancellationToken)
    {
        BenchRow work = BenchRow.Create(row, _file);
        await using BenchPair? pair = work.Connects ? null : await ConnectAsync(mode, cancellationToken);
        await RepeatAsync(work, pair, mode, time, cancellationToken);
        using Process process = Process.GetCurrentProcess();
        TimeSpan processorBefore = process.TotalProcessorTime;
        long started = Stopwatch.GetTimestamp();
        (long operations, string offload) = await RepeatAsync(work, pair, mode, time, cancellationToken);
        TimeSpan wall = Stopwatch.GetElapsedTime(started);
        process.Refresh();
        TimeSpan processor = process.TotalProcessorTime - processorBefore;
        return new Measurement(
            row,
            work.Description,
            mode,
            offload,
            operations,
            Math.Round(wall.TotalMicroseconds / operations, 2),
            Math.Round(processor.TotalMicroseconds / operations, 2));
    }

    public void Dispose()
    {
        _listener.Dispose();
        _file.Dispose();
        _certificate.Dispose();
    }

    private Task<BenchPair> ConnectAsync(BenchMode mode, CancellationToken cancellationToken) =>
        BenchPair.ConnectAsync(mode, _listener, _context, cancellationToken);

    private async Task<(long Operations, string Offload)> RepeatAsync(
        BenchRow work, BenchPair? kept, BenchMode mode, TimeSpan time, CancellationToken cancellationToken)
    {
        string offload = "";
        long operations = 0;
        for (long started = Stopwatch.GetTimestamp(); operations == 0 || Stopwatch.GetElapsedTime(started) < time; operations++)
        {
            BenchPair pair = kept ?? await ConnectAsync(mode, cancellationToken);
            try
            {
                await work.RunAsync(pair, cancellationToken);
                offload = (pair.Server as KtlsStream)?.Offload.ToString() ?? "stock";
            }
            finally
            {
                if (kept is null)
                {
                    await pair.DisposeAsync();
                }
            }
        }

        return (operations, offload);
    }

    /// <param name="Row">Which.</param>
    /// <param name="Operation">What one is.</param>
    /// <param name="Mode">The streams.</param>
    /// <param name="Offload">What became of the server's.</param>
    /// <param name="Operations">How many were measured.</param>
    /// <param name="WallMicroseconds">For one.</param>
    /// <param name="ProcessorMicroseconds">User and kernel, both ends, for one.</param>
    internal sealed record Measurement(
        string Row, string Operation, BenchMode Mode, string Offload, long Operations, double WallMicroseconds, double ProcessorMicroseconds);
}

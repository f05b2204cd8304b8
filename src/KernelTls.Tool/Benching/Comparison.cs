using System.Diagnostics;
using System.Net.Security;
using System.Net.Sockets;
using System.Security.Cryptography.X509Certificates;
using Microsoft.Win32.SafeHandles;

namespace KernelTls.Tool.Benching;

/// <summary>
/// Measures rows in modes. Both ends are in this process, over loopback, and one operation runs after the other.
/// </summary>
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
        _file = CreateFile(Path.Combine(Path.GetTempPath(), $"ktls-bench-{Environment.ProcessId}-{Guid.NewGuid():N}"));
    }

    /// <summary>Measures a row in a mode.</summary>
    /// <param name="row">One of <see cref="BenchRow.Names"/>.</param>
    /// <param name="mode">The streams of both ends.</param>
    /// <param name="time">The time to warm up, and then the time to measure.</param>
    /// <param name="cancellationToken">The token to monitor for cancellation requests.</param>
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

    private static SafeFileHandle CreateFile(string path)
    {
        try
        {
            return Write(path);
        }
        catch (Exception e) when (e is IOException or UnauthorizedAccessException)
        {
            throw new ToolFailedException(
                ExitCode.Failed, $"'{path}', a file of 4 MiB to measure with, cannot be written: {e.Message.TrimEnd('.')}. Set TMPDIR to a directory with space.", e);
        }
    }

    private static SafeFileHandle Write(string path)
    {
        SafeFileHandle file = File.OpenHandle(path, FileMode.CreateNew, FileAccess.ReadWrite, FileShare.Read);

        // The deleted file exists while it is open and is removed with the process, however that ends.
        File.Delete(path);
        RandomAccess.Write(file, new byte[FileSize], 0);
        return file;
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

    /// <summary>Contains the result of a measurement.</summary>
    /// <param name="Row">The name of the row.</param>
    /// <param name="Operation">The description of the operation.</param>
    /// <param name="Mode">The streams.</param>
    /// <param name="Offload">The data paths of the server.</param>
    /// <param name="Operations">The number of operations.</param>
    /// <param name="WallMicroseconds">The elapsed time of one operation.</param>
    /// <param name="ProcessorMicroseconds">The user and kernel time of one operation, for both ends.</param>
    internal sealed record Measurement(
        string Row, string Operation, BenchMode Mode, string Offload, long Operations, double WallMicroseconds, double ProcessorMicroseconds);
}

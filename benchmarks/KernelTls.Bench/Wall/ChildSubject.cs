using System.Diagnostics;
using System.Text.Json;
using KernelTls.Bench.Report;

namespace KernelTls.Bench.Wall;

/// <summary>
/// Runs a row in one mode in a child process. The child measures once for each line that it receives, and exits at the end of its input.
/// </summary>
internal sealed class ChildSubject : ILoadSubject
{
    private static readonly TimeSpan s_exit = TimeSpan.FromSeconds(30);

    private readonly Process _process;
    private readonly string _what;
    private readonly TimeSpan _limit;

    private ChildSubject(Process process, string what, TimeSpan limit)
    {
        _process = process;
        _what = what;
        _limit = limit;
    }

    /// <summary>Starts the child and waits until it is warm.</summary>
    /// <param name="row">The name of the row.</param>
    /// <param name="mode">The name of the mode.</param>
    /// <param name="length">The duration of each measurement.</param>
    /// <param name="cancellationToken">A token that ends the child.</param>
    public static async Task<ChildSubject> StartAsync(string row, string mode, TimeSpan length, CancellationToken cancellationToken)
    {
        ProcessStartInfo start = BenchProcess.DescribeChild(WallCommands.MeasureOften, row, mode, $"{length.TotalSeconds:F0}");
        start.RedirectStandardInput = true;
        start.RedirectStandardOutput = true;
        ChildSubject subject = new(Process.Start(start)!, $"{row} {mode}", WallClock.LongestOf(length) + Limits.Measurement);
        try
        {
            _ = await subject.ReadAsync(cancellationToken);
            return subject;
        }
        catch
        {
            await subject.DisposeAsync();
            throw;
        }
    }

    public async Task<WallMeasurement> MeasureAsync(CancellationToken cancellationToken)
    {
        await _process.StandardInput.WriteLineAsync();
        await _process.StandardInput.FlushAsync(cancellationToken);
        return JsonSerializer.Deserialize(await ReadAsync(cancellationToken), BenchJson.Default.WallMeasurement)!;
    }

    public async ValueTask DisposeAsync()
    {
        _process.StandardInput.Close();
        try
        {
            await _process.WaitForExitAsync().WaitAsync(s_exit);
        }
        catch (TimeoutException)
        {
            _process.Kill(entireProcessTree: true);
        }

        _process.Dispose();
    }

    private async Task<string> ReadAsync(CancellationToken cancellationToken)
    {
        try
        {
            return await _process.StandardOutput.ReadLineAsync(cancellationToken).AsTask().WaitAsync(_limit, cancellationToken)
                ?? throw new BenchFailedException($"'{_what}' ended");
        }
        catch (TimeoutException)
        {
            string threads = ThreadStates.Describe(_process.Id);
            _process.Kill(entireProcessTree: true);
            throw new BenchFailedException($"'{_what}' did not answer in {_limit.TotalSeconds} s; its threads, and those of what it has started:{threads}");
        }
    }
}

using System.Diagnostics;
using KernelTls.Bench.Report;

namespace KernelTls.Bench.Generators;

/// <summary>Represents a program that generates load: how it is started for a row, and how its report is read.</summary>
/// <param name="program">The name of the program.</param>
internal abstract class Generator(string program)
{
    /// <summary>How much longer than asked for a program may take.</summary>
    private static readonly TimeSpan s_tolerance = TimeSpan.FromSeconds(30);

    public string Program => program;

    /// <summary>Generates load for a time.</summary>
    /// <param name="row">The row.</param>
    /// <param name="origin">The server's address.</param>
    /// <param name="length">The time.</param>
    /// <param name="cancellationToken">A token that ends the program.</param>
    /// <exception cref="BenchFailedException">The program failed, or not all responses are those of success.</exception>
    public async Task<GeneratorReport> RunAsync(GeneratorRow row, Uri origin, TimeSpan length, CancellationToken cancellationToken)
    {
        DirectoryInfo directory = Directory.CreateTempSubdirectory("kerneltls-bench-");
        try
        {
            using Process process = Process.Start(new ProcessStartInfo(program, Arguments(row, new Uri(origin, row.Path), length, directory.FullName))
            {
                RedirectStandardOutput = true,
                RedirectStandardError = true,
            })!;
            try
            {
                Task<string> errors = process.StandardError.ReadToEndAsync(cancellationToken);
                string output = await process.StandardOutput.ReadToEndAsync(cancellationToken).WaitAsync(length + s_tolerance, cancellationToken);
                await process.WaitForExitAsync(cancellationToken).InTime($"{program} to end");
                return process.ExitCode == 0
                    ? Read(output, directory.FullName)
                    : throw new BenchFailedException($"{program} ended with {process.ExitCode}: {output}{await errors.InTime($"the errors of {program}")}");
            }
            catch (TimeoutException)
            {
                throw new BenchFailedException($"{program} did not end in {(length + s_tolerance).TotalSeconds} s");
            }
            finally
            {
                process.Kill();
            }
        }
        finally
        {
            directory.Delete(recursive: true);
        }
    }

    /// <summary>Reads the report.</summary>
    /// <param name="output">What the program wrote to its standard output.</param>
    /// <param name="directory">The directory that <see cref="Arguments"/> received.</param>
    /// <exception cref="BenchFailedException">Not all responses are those of success.</exception>
    public abstract GeneratorReport Read(string output, string directory);

    /// <summary>Returns the program's arguments.</summary>
    /// <param name="row">The row.</param>
    /// <param name="target">The address of the requests.</param>
    /// <param name="length">The time.</param>
    /// <param name="directory">A directory for files, which is deleted after the run.</param>
    protected abstract IEnumerable<string> Arguments(GeneratorRow row, Uri target, TimeSpan length, string directory);

    /// <summary>Summarizes the durations of all requests.</summary>
    protected static GeneratorReport Summarize(List<TimeSpan> times, double perSecond)
    {
        times.Sort();
        return new GeneratorReport(
            times.Count, perSecond, TimeSpan.FromTicks((long)times.Average(time => time.Ticks)), Percentiles.Of(times, 0.5), Percentiles.Of(times, 0.99));
    }
}

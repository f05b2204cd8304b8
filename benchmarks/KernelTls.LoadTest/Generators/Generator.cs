using System.ComponentModel;
using System.Diagnostics;

namespace KernelTls.LoadTest.Generators;

/// <summary>Represents a program that generates load and shares no code with .NET.</summary>
/// <param name="program">The name of the program.</param>
/// <param name="package">The Debian package that has it.</param>
internal abstract class Generator(string program, string package)
{
    /// <summary>How much longer than asked for a program may take.</summary>
    private static readonly TimeSpan s_tolerance = TimeSpan.FromSeconds(60);

    /// <summary>Generates load for a number of seconds.</summary>
    /// <exception cref="LoadTestFailedException">The program is missing, failed, did not end, or wrote no report.</exception>
    public async Task<GeneratorReport> RunAsync(GeneratorOptions options, int seconds, CancellationToken cancellationToken)
    {
        string directory = Directory.CreateTempSubdirectory("kerneltls-load-test").FullName;
        try
        {
            using Process process = Start(Arguments(options, seconds, directory));
            try
            {
                Task<string> errors = process.StandardError.ReadToEndAsync(cancellationToken);
                string output = await process.StandardOutput.ReadToEndAsync(cancellationToken)
                    .WaitAsync(TimeSpan.FromSeconds(seconds) + s_tolerance, cancellationToken);
                await process.WaitForExitAsync(cancellationToken).WaitAsync(s_tolerance, cancellationToken);
                return process.ExitCode == 0 && Read(output, directory) is { } report
                    ? report
                    : throw new LoadTestFailedException($"{program} ended with {process.ExitCode}: {output}{await errors.WaitAsync(s_tolerance, cancellationToken)}");
            }
            catch (TimeoutException)
            {
                throw new LoadTestFailedException($"{program} did not end in {seconds + s_tolerance.TotalSeconds} s");
            }
            finally
            {
                process.Kill();
            }
        }
        finally
        {
            Directory.Delete(directory, recursive: true);
        }
    }

    /// <summary>Reads the report, or returns null if there is none.</summary>
    /// <param name="output">What the program wrote to its standard output.</param>
    /// <param name="directory">The directory that <see cref="Arguments"/> received.</param>
    public abstract GeneratorReport? Read(string output, string directory);

    /// <summary>Returns the program's arguments.</summary>
    /// <param name="options">The options.</param>
    /// <param name="seconds">The duration.</param>
    /// <param name="directory">A directory for files, which is deleted after the run.</param>
    protected abstract IEnumerable<string> Arguments(GeneratorOptions options, int seconds, string directory);

    private Process Start(IEnumerable<string> arguments)
    {
        try
        {
            return Process.Start(new ProcessStartInfo(program, arguments) { RedirectStandardOutput = true, RedirectStandardError = true })!;
        }
        catch (Win32Exception e)
        {
            throw new LoadTestFailedException($"{program} cannot be started; apt-get install {package}", e);
        }
    }
}

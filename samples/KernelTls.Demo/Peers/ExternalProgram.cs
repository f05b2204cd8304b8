using System.ComponentModel;
using System.Diagnostics;
using System.Text;

namespace KernelTls.Demo.Peers;

/// <summary>Runs an external program once. Ends it if it stalls or if this process gives up.</summary>
internal sealed class ExternalProgram
{
    private const int ErrorTextLimit = 2000;
    private static readonly TimeSpan s_stallLimit = TimeSpan.FromSeconds(60);

    private readonly string _name;
    private readonly ProcessStartInfo _start;

    public ExternalProgram(string name, IEnumerable<string> arguments)
    {
        _name = name;
        _start = new ProcessStartInfo(name, arguments)
        {
            RedirectStandardInput = true,
            RedirectStandardOutput = true,
            RedirectStandardError = true,
            Environment =
            {
                // A system-wide "Options = KTLS" would count the peer's end in the kernel's counters as well.
                ["OPENSSL_CONF"] = "/dev/null",
                ["LC_ALL"] = "C",
            },
        };
    }

    /// <summary>Writes <paramref name="input"/> to the program and passes its output on as it arrives.</summary>
    /// <exception cref="DemoFailedException">The program is not installed, writes nothing for a minute, or exits with a code other than 0.</exception>
    public async Task RunAsync(string input, Action<ReadOnlyMemory<byte>> onOutput, CancellationToken cancellationToken)
    {
        using Process process = Start();
        using CancellationTokenSource stalled = CancellationTokenSource.CreateLinkedTokenSource(cancellationToken);
        try
        {
            stalled.CancelAfter(s_stallLimit);
            Task<string> errors = ReadErrorsAsync(process.StandardError, stalled.Token);
            await WriteAsync(process.StandardInput, input, stalled.Token);
            await ReadAsync(process.StandardOutput.BaseStream, onOutput, stalled);
            string errorText = await errors;
            await process.WaitForExitAsync(stalled.Token);
            if (process.ExitCode != 0)
            {
                throw new DemoFailedException($"{_name} ended with exit code {process.ExitCode}: {errorText}");
            }
        }
        catch (OperationCanceledException) when (!cancellationToken.IsCancellationRequested)
        {
            throw new DemoFailedException($"{_name} wrote nothing for {s_stallLimit.TotalSeconds} s and was ended");
        }
        finally
        {
            if (!process.HasExited)
            {
                process.Kill(entireProcessTree: true);
                await process.WaitForExitAsync(CancellationToken.None);
            }
        }
    }

    private Process Start()
    {
        try
        {
            return Process.Start(_start)!;
        }
        catch (Win32Exception e)
        {
            throw new DemoFailedException($"cannot run {_name} (apt-get install {_name}): {e.Message}");
        }
    }

    private static async Task WriteAsync(StreamWriter standardInput, string input, CancellationToken cancellationToken)
    {
        try
        {
            await standardInput.BaseStream.WriteAsync(Encoding.ASCII.GetBytes(input), cancellationToken);
            standardInput.Close();
        }
        catch (IOException)
        {
            // The program ended without reading its input. Its exit code and its errors give the reason.
        }
    }

    private static async Task ReadAsync(
        Stream standardOutput, Action<ReadOnlyMemory<byte>> onOutput, CancellationTokenSource stalled)
    {
        byte[] buffer = new byte[64 * 1024];
        for (int read; (read = await standardOutput.ReadAsync(buffer, stalled.Token)) > 0;)
        {
            onOutput(buffer.AsMemory(0, read));
            stalled.CancelAfter(s_stallLimit);
        }
    }

    /// <summary>Reads all output, so that the program never waits, and keeps the end of it.</summary>
    private static async Task<string> ReadErrorsAsync(StreamReader standardError, CancellationToken cancellationToken)
    {
        StringBuilder text = new();
        char[] buffer = new char[1024];
        for (int read; (read = await standardError.ReadAsync(buffer, cancellationToken)) > 0;)
        {
            text.Append(buffer, 0, read);
            text.Remove(0, Math.Max(0, text.Length - ErrorTextLimit));
        }

        return text.ToString().Trim().ReplaceLineEndings("; ");
    }
}

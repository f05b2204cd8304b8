using System.ComponentModel;
using System.Diagnostics;
using System.Text;

namespace KernelTls.Demo.Peers;

/// <summary>A program that others wrote, run once. It is ended when it stalls, and whenever this process gives up.</summary>
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
                // A system-wide "Options = KTLS" would put the peer's end into the kernel's counters as well.
                ["OPENSSL_CONF"] = "/dev/null",
                ["LC_ALL"] = "C",
            },
        };
    }

    /// <summary>Gives it <paramref name="input"/> and hands its output on as it comes.</summary>
    /// <exception cref="DemoFailedException">It is not installed, writes nothing for a minute, or ends with another exit code than 0.</exception>
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
            // It ended without reading its input: its exit code and its errors say why.
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

    /// <summary>Reads all there is, so that the program never waits, and keeps the end.</summary>
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

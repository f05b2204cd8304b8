using System.Diagnostics;
using System.Runtime.InteropServices;
using System.Text;
using KernelTls.Tests;

namespace KernelTls.Bench.Servers;

/// <summary>
/// Runs a server in a separate process: nginx, or Kestrel in this program, which serves static files or acts as a reverse
/// proxy, or a server for a library's client. This process starts the server, so the server runs under the same
/// conditions as other measured processes.
/// </summary>
internal sealed partial class ServerProcess : IDisposable
{
    private static readonly TimeSpan s_shutdown = TimeSpan.FromSeconds(30);

    private readonly ReservedPort _port;
    private readonly Process _process;
    private readonly int? _endSignal;
    private readonly StringBuilder _said = new();

    private ServerProcess(ReservedPort port, ProcessStartInfo start, int? endSignal)
    {
        _port = port;
        _endSignal = endSignal;
        start.RedirectStandardOutput = true;
        start.RedirectStandardError = true;
        _process = Process.Start(start)!;
    }

    public int Port => _port.Number;

    public int ProcessId => _process.Id;

    /// <param name="mode">A mode of <see cref="Modes.ModeTable.Servers"/>.</param>
    /// <param name="files">The files and the certificate.</param>
    /// <param name="upstream">
    /// The server from which a reverse proxy requests the files, or null if the server serves them.
    /// </param>
    public static Task<ServerProcess> StartAsync(string mode, ServedFiles files, ServerProcess? upstream)
    {
        ReservedPort port = new();
        return NginxServer.IsMode(mode)
            ? StartAsync(port, NginxServer.Describe(mode, files, port.Number, upstream?.Port), NginxServer.Listening)
            : StartAsync(port, KestrelServer.Describe(mode, files, port.Number, upstream?.Port), KestrelServer.Listening);
    }

    /// <summary>Starts the server behind a reverse proxy.</summary>
    public static Task<ServerProcess> StartUpstreamAsync(ServedFiles files)
    {
        ReservedPort port = new();
        return StartAsync(port, NginxServer.DescribeUpstream(files, port.Number), NginxServer.Listening);
    }

    public void Dispose()
    {
        if (_endSignal is not { } signal || kill(_process.Id, signal) != 0 || !_process.WaitForExit(s_shutdown))
        {
            _process.Kill();
        }

        _process.Dispose();
        _port.Dispose();
    }

    /// <summary>Starts any server, and waits until it listens.</summary>
    /// <param name="port">The port on which the server listens. It is freed when the server is disposed.</param>
    /// <param name="start">The server's command.</param>
    /// <param name="listening">The text that the server writes when it listens.</param>
    /// <param name="endSignal">
    /// The signal that makes the server end its own processes and itself, or null if the server is a single process and
    /// can be killed.
    /// </param>
    public static async Task<ServerProcess> StartAsync(ReservedPort port, ProcessStartInfo start, string listening, int? endSignal = null)
    {
        ServerProcess server = new(port, start, endSignal);
        try
        {
            await server.SaysAsync(listening).InTime($"{start.FileName} to listen");
        }
        catch
        {
            server.Dispose();
            throw;
        }

        return server;
    }

    /// <summary>
    /// Waits until the server writes a word to its standard output or its standard error. The output is read and
    /// discarded as long as the process runs.
    /// </summary>
    private async Task SaysAsync(string word)
    {
        TaskCompletionSource said = new(TaskCreationOptions.RunContinuationsAsynchronously);
        int open = 2;
        _process.OutputDataReceived += Hear;
        _process.ErrorDataReceived += Hear;
        _process.BeginOutputReadLine();
        _process.BeginErrorReadLine();
        await said.Task;

        void Hear(object sender, DataReceivedEventArgs line)
        {
            if (line.Data is null)
            {
                if (Interlocked.Decrement(ref open) == 0)
                {
                    said.TrySetException(new BenchFailedException($"the server ended before it listened: {Said()}"));
                }
            }
            else if (line.Data.Contains(word, StringComparison.Ordinal))
            {
                said.TrySetResult();
            }
            else if (!said.Task.IsCompleted)
            {
                lock (_said)
                {
                    _said.AppendLine(line.Data);
                }
            }
        }

        string Said()
        {
            lock (_said)
            {
                return _said.ToString();
            }
        }
    }

    [LibraryImport("libc")]
    private static partial int kill(int process, int signal);
}

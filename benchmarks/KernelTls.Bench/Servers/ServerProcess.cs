using System.Diagnostics;
using System.Net;
using System.Net.Sockets;
using System.Text;

namespace KernelTls.Bench.Servers;

/// <summary>
/// Runs a server on https://localhost in a separate process: nginx, or Kestrel in this program. It serves static files
/// or acts as a reverse proxy. This process starts the server, so the server runs under the same conditions as other
/// measured processes.
/// </summary>
internal sealed class ServerProcess : IDisposable
{
    private readonly Process _process;
    private readonly StringBuilder _said = new();

    private ServerProcess(int port, ProcessStartInfo start)
    {
        Port = port;
        start.RedirectStandardError = true;
        _process = Process.Start(start)!;
    }

    public int Port { get; }

    public int ProcessId => _process.Id;

    /// <param name="mode">A mode of <see cref="Modes.ModeTable.Servers"/>.</param>
    /// <param name="files">The files and the certificate.</param>
    /// <param name="upstream">
    /// The server from which a reverse proxy requests the files, or null if the server serves them.
    /// </param>
    public static Task<ServerProcess> StartAsync(string mode, ServedFiles files, ServerProcess? upstream)
    {
        int port = FindPort();
        return NginxServer.IsMode(mode)
            ? StartAsync(port, NginxServer.Describe(mode, files, port, upstream?.Port), NginxServer.Listening)
            : StartAsync(port, KestrelServer.Describe(mode, files, port, upstream?.Port), KestrelServer.Listening);
    }

    /// <summary>Starts the server behind a reverse proxy.</summary>
    public static Task<ServerProcess> StartUpstreamAsync(ServedFiles files)
    {
        int port = FindPort();
        return StartAsync(port, NginxServer.DescribeUpstream(files, port), NginxServer.Listening);
    }

    public void Dispose()
    {
        _process.Kill();
        _process.Dispose();
    }

    private static async Task<ServerProcess> StartAsync(int port, ProcessStartInfo start, string listening)
    {
        ServerProcess server = new(port, start);
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

    private static int FindPort()
    {
        using Socket socket = new(AddressFamily.InterNetwork, SocketType.Stream, ProtocolType.Tcp);
        socket.Bind(new IPEndPoint(IPAddress.Loopback, 0));
        return ((IPEndPoint)socket.LocalEndPoint!).Port;
    }

    /// <summary>
    /// Waits until the server writes a word to its standard error. The output is read and discarded as long as the
    /// process runs.
    /// </summary>
    private async Task SaysAsync(string word)
    {
        TaskCompletionSource said = new(TaskCreationOptions.RunContinuationsAsynchronously);
        _process.ErrorDataReceived += (_, line) =>
        {
            if (line.Data is null)
            {
                said.TrySetException(new BenchFailedException($"the server ended before it listened: {_said}"));
            }
            else if (line.Data.Contains(word, StringComparison.Ordinal))
            {
                said.TrySetResult();
            }
            else if (!said.Task.IsCompleted)
            {
                _said.AppendLine(line.Data);
            }
        };
        _process.BeginErrorReadLine();
        await said.Task;
    }
}

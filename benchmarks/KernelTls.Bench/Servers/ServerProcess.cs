using System.Diagnostics;
using System.Net;
using System.Net.Sockets;
using System.Text;
using KernelTls.Bench.Modes;

namespace KernelTls.Bench.Servers;

/// <summary>
/// A server of static files on https://localhost in a process of its own: nginx, or Kestrel in this program. Started here, so it
/// runs under the same conditions as what is measured elsewhere.
/// </summary>
internal sealed class ServerProcess : IDisposable
{
    public const string Listening = "listening";

    // At this point of its start, by its own account, nginx listens.
    private const string NginxListening = "getrlimit(RLIMIT_NOFILE)";

    private readonly Process _process;
    private readonly StringBuilder _said = new();

    private ServerProcess(int port, ProcessStartInfo start)
    {
        Port = port;
        start.RedirectStandardError = true;
        _process = Process.Start(start)!;
    }

    /// <summary>A process that serves these.</summary>
    /// <param name="mode">A mode of <see cref="ModeTable.Servers"/>.</param>
    /// <param name="files">Files and certificate; nginx's configuration is written there as well.</param>
    public static async Task<ServerProcess> StartAsync(string mode, ServedFiles files)
    {
        int port = FindPort();
        ServerProcess server = new(
            port,
            IsNginx(mode) ? DescribeNginx(mode, files, port) : BenchProcess.DescribeChild(BenchCommand.Serve, mode, files.FullName, $"{port}"));
        try
        {
            await server.SaysAsync(IsNginx(mode) ? NginxListening : Listening).InTime($"{mode} to listen");
        }
        catch
        {
            server.Dispose();
            throw;
        }

        return server;
    }

    public static bool IsNginx(string mode) => mode is ModeTable.Nginx or ModeTable.NginxKernel;

    /// <summary>As it says it: nginx/1.2.3.</summary>
    public static async Task<string> ReadNginxVersionAsync()
    {
        using Process nginx = Process.Start(new ProcessStartInfo("nginx", "-v") { RedirectStandardError = true })!;
        string said = await nginx.StandardError.ReadToEndAsync().InTime("nginx's version");
        return said.Split(':')[^1].Trim();
    }

    public int Port { get; }

    public int ProcessId => _process.Id;

    public void Dispose()
    {
        _process.Kill();
        _process.Dispose();
    }

    private static int FindPort()
    {
        using Socket socket = new(AddressFamily.InterNetwork, SocketType.Stream, ProtocolType.Tcp);
        socket.Bind(new IPEndPoint(IPAddress.Loopback, 0));
        return ((IPEndPoint)socket.LocalEndPoint!).Port;
    }

    /// <summary>As Debian sets it up as far as it matters here; one process, which does what a worker does.</summary>
    private static ProcessStartInfo DescribeNginx(string mode, ServedFiles files, int port)
    {
        string configuration = Path.Combine(files.FullName, "nginx.conf");
        string[] temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
        File.WriteAllText(configuration, $$"""
            daemon off;
            master_process off;
            pid {{files.FullName}}/nginx.pid;
            error_log stderr notice;
            events { }
            http {
                {{string.Join("\n    ", temporary.Select(kind => $"{kind}_temp_path {files.FullName}/{kind};"))}}
                access_log off;
                sendfile on;
                server {
                    listen 127.0.0.1:{{port}} ssl;
                    root {{ServedFiles.RootIn(files.FullName)}};
                    ssl_certificate {{BenchCertificates.PathIn(files.FullName)}};
                    ssl_certificate_key {{BenchCertificates.KeyPathIn(files.FullName)}};
                    ssl_protocols TLSv1.3;
                    {{(mode == ModeTable.NginxKernel ? "ssl_conf_command Options KTLS;" : "")}}
                }
            }
            """);
        return new ProcessStartInfo("nginx", ["-e", "stderr", "-p", files.FullName, "-c", configuration]);
    }

    /// <summary>Waits for a word on its standard error, which is read, and forgotten, for as long as the process lives.</summary>
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

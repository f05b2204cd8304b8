namespace KernelTls.Tests;

/// <summary>nginx in the foreground: one process, its own files, a port of its own on 127.0.0.1.</summary>
internal sealed class Nginx : IDisposable
{
    private readonly TemporaryDirectory _directory = new();
    private readonly ReservedPort _port = new();
    private readonly ExternalProgram _program;

    /// <param name="prepare">Writes what nginx needs into the directory.</param>
    /// <param name="server">The server block's content, for a directory and a port.</param>
    /// <param name="upstream">The content of the block of that name, where there is one: what proxy_pass calls upstream.</param>
    public Nginx(Action<string> prepare, Func<string, int, string> server, string? upstream = null)
    {
        prepare(_directory.FullName);
        string[] temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
        File.WriteAllText(_directory["nginx.conf"], $$"""
            daemon off;
            master_process off;
            pid {{_directory["pid"]}};
            error_log stderr notice;
            error_log {{LogPath}} debug;
            events { worker_connections 64; }
            http {
                access_log off;
                {{string.Join("\n    ", temporary.Select(t => $"{t}_temp_path {_directory[t]};"))}}
                {{(upstream is null ? "" : $"upstream upstream {{ {upstream} }}")}}
                server {
                    {{server(_directory.FullName, _port.Number)}}
                }
            }
            """);
        _program = ExternalProgram.Start(
            "nginx", _directory.FullName, "-e", "stderr", "-p", _directory.FullName, "-c", _directory["nginx.conf"]);
    }

    public int Port => _port.Number;

    /// <summary>Its own account, with what its debugging adds.</summary>
    public string Log => File.ReadAllText(LogPath);

    private string LogPath => _directory["log"];

    /// <summary>Its sockets listen before it says under which limits it runs.</summary>
    public Task StartedAsync() => _program.ErrorsContain("getrlimit(RLIMIT_NOFILE)");

    public void Dispose()
    {
        _program.Dispose();
        _port.Dispose();
        _directory.Dispose();
    }
}

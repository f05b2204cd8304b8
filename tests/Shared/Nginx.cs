using System.Security.Authentication;

namespace KernelTls.Tests;

/// <summary>Runs nginx in the foreground: one process, with its own files and its own port on 127.0.0.1.</summary>
internal sealed class Nginx : IDisposable
{
    private readonly TemporaryDirectory _directory = new();
    private readonly ReservedPort _port = new();
    private readonly ExternalProgram _program;

    /// <summary>Starts nginx.</summary>
    /// <param name="prepare">The action that writes nginx's files into the directory.</param>
    /// <param name="server">The function that returns the server block's content for a directory and a port.</param>
    /// <param name="upstream">The content of the upstream block, which proxy_pass calls "upstream", or null.</param>
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

    /// <summary>Returns the name of a version in nginx's configuration.</summary>
    public static string NameOf(SslProtocols version) => version == SslProtocols.Tls12 ? "TLSv1.2" : "TLSv1.3";

    /// <summary>
    /// Starts a plain http proxy in front of one of our servers on 127.0.0.1, whose certificate for localhost it
    /// verifies.
    /// </summary>
    /// <param name="upstream">The server's port.</param>
    /// <param name="version">The TLS version to use with the server.</param>
    /// <param name="more">More configuration for the server.</param>
    /// <param name="keepAlive">The number of connections to keep, or 0 to open one for each request.</param>
    public static async Task<Nginx> StartProxyAsync(int upstream, SslProtocols version, string more, int keepAlive = 0)
    {
        Nginx nginx = new(
            directory => Certificates.WriteAuthority(directory),
            (directory, port) => $$"""
                listen 127.0.0.1:{{port}};
                client_max_body_size 0;
                location / {
                    proxy_pass https://upstream;
                    proxy_http_version 1.1;
                    proxy_ssl_protocols {{NameOf(version)}};
                    proxy_ssl_name localhost;
                    proxy_ssl_server_name on;
                    proxy_ssl_verify on;
                    proxy_ssl_trusted_certificate {{directory}}/authority.pem;
                    {{more}}
                }
                """,
            $"server 127.0.0.1:{upstream}; {(keepAlive > 0 ? $"keepalive {keepAlive};" : "")}");
        await nginx.StartedAsync();
        return nginx;
    }

    /// <summary>Gets the access log, including debugging output.</summary>
    public string Log => File.ReadAllText(LogPath);

    private string LogPath => _directory["log"];

    /// <summary>Waits until nginx reports its limits, which it does after its sockets listen.</summary>
    public Task StartedAsync() => _program.ErrorsContain("getrlimit(RLIMIT_NOFILE)");

    public void Dispose()
    {
        _program.Dispose();
        _port.Dispose();
        _directory.Dispose();
    }
}

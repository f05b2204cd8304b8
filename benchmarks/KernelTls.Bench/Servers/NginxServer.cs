using System.Diagnostics;
using KernelTls.Bench.Modes;

namespace KernelTls.Bench.Servers;

/// <summary>
/// nginx as Debian sets it up, as far as it matters here, without a log: one process, which does what a worker does. With
/// files, or as a reverse proxy.
/// </summary>
internal static class NginxServer
{
    /// <summary>At this point of its start, by its own account, it listens.</summary>
    public const string Listening = "getrlimit(RLIMIT_NOFILE)";

    public static bool IsMode(string mode) => mode is ModeTable.Nginx or ModeTable.NginxKernel;

    /// <param name="mode">With kernel TLS or without.</param>
    /// <param name="files">Files and certificate; its configuration is written there.</param>
    /// <param name="port">To listen at.</param>
    /// <param name="upstream">The port where requests go; null: it has the files.</param>
    public static ProcessStartInfo Describe(string mode, ServedFiles files, int port, int? upstream) => Describe(
        files,
        port,
        $$"""
        listen 127.0.0.1:{{port}} ssl;
        ssl_certificate {{BenchCertificates.PathIn(files.FullName)}};
        ssl_certificate_key {{BenchCertificates.KeyPathIn(files.FullName)}};
        ssl_protocols TLSv1.3;
        {{(mode == ModeTable.NginxKernel ? "ssl_conf_command Options KTLS;" : "")}}
        {{(upstream is null
            ? $"root {ServedFiles.RootIn(files.FullName)};"
            : "location / { proxy_pass http://upstream; proxy_http_version 1.1; proxy_set_header Connection \"\"; }")}}
        """,
        upstream is null ? "" : $"upstream upstream {{ server 127.0.0.1:{upstream}; keepalive 4; }}");

    /// <summary>What stands behind a reverse proxy: files without TLS, on connections that live for as long as they are wanted.</summary>
    public static ProcessStartInfo DescribeUpstream(ServedFiles files, int port) => Describe(
        files,
        port,
        $"listen 127.0.0.1:{port}; keepalive_requests 1000000; root {ServedFiles.RootIn(files.FullName)};",
        http: "");

    /// <summary>As it says it: nginx/1.2.3.</summary>
    public static async Task<string> ReadVersionAsync()
    {
        using Process nginx = Process.Start(new ProcessStartInfo("nginx", "-v") { RedirectStandardError = true })!;
        string said = await nginx.StandardError.ReadToEndAsync().InTime("nginx's version");
        return said.Split(':')[^1].Trim();
    }

    private static ProcessStartInfo Describe(ServedFiles files, int port, string server, string http)
    {
        string configuration = Path.Combine(files.FullName, $"nginx-{port}.conf");
        string[] temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
        File.WriteAllText(configuration, $$"""
            daemon off;
            master_process off;
            pid {{files.FullName}}/nginx-{{port}}.pid;
            error_log stderr notice;
            events { }
            http {
                {{string.Join("\n    ", temporary.Select(kind => $"{kind}_temp_path {files.FullName}/{kind};"))}}
                access_log off;
                sendfile on;
                {{http}}
                server {
                    {{server}}
                }
            }
            """);
        return new ProcessStartInfo("nginx", ["-e", "stderr", "-p", files.FullName, "-c", configuration]);
    }
}

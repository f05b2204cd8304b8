using System.Diagnostics;
using KernelTls.Bench.Modes;

namespace KernelTls.Bench.Servers;

/// <summary>
/// Configures nginx as Debian does, as far as that affects these measurements, but without an access log. A single
/// process does the work of a worker process. It serves files or acts as a reverse proxy.
/// </summary>
internal static class NginxServer
{
    /// <summary>The text of a log line that nginx writes during its start, when it already listens.</summary>
    public const string Listening = "getrlimit(RLIMIT_NOFILE)";

    /// <summary>The path that reads the request's body.</summary>
    public const string UploadPath = "/upload";

    public static bool IsMode(string mode) => mode is ModeTable.Nginx or ModeTable.NginxKernel;

    /// <param name="mode">The mode, with or without kernel TLS.</param>
    /// <param name="files">
    /// The files and the certificate. This method writes the configuration of nginx to the same directory.
    /// </param>
    /// <param name="port">The port on which nginx listens.</param>
    /// <param name="upstream">The port to which requests are forwarded, or null if nginx serves the files.</param>
    public static ProcessStartInfo Describe(string mode, ServedFiles files, int port, int? upstream) => Describe(
        files,
        port,
        $$"""
        listen 127.0.0.1:{{port}} ssl http2;
        keepalive_requests 1000000;
        client_max_body_size 0;
        ssl_certificate {{BenchCertificates.PathIn(files.FullName)}};
        ssl_certificate_key {{BenchCertificates.KeyPathIn(files.FullName)}};
        ssl_protocols TLSv1.3;
        {{(mode == ModeTable.NginxKernel ? "ssl_conf_command Options KTLS;" : "")}}
        {{(upstream is null
            ? $"root {ServedFiles.RootIn(files.FullName)}; location {UploadPath} {{ return 200; }}"
            : "location / { proxy_pass http://upstream; proxy_http_version 1.1; proxy_set_header Connection \"\"; }")}}
        """,
        upstream is null ? "" : $"upstream upstream {{ server 127.0.0.1:{upstream}; keepalive 4; }}");

    /// <summary>
    /// Describes the process of the server behind a reverse proxy. It serves files without TLS and keeps connections
    /// open as long as its clients need them.
    /// </summary>
    public static ProcessStartInfo DescribeUpstream(ServedFiles files, int port) => Describe(
        files,
        port,
        $"listen 127.0.0.1:{port}; keepalive_requests 1000000; root {ServedFiles.RootIn(files.FullName)};",
        http: "");

    /// <summary>Returns the version in the form in which nginx reports it, such as nginx/1.2.3.</summary>
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

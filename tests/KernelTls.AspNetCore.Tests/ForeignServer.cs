using System.Security.Authentication;
using KernelTls.Tests;
using Microsoft.AspNetCore.Builder;
using Microsoft.AspNetCore.Connections.Features;
using Microsoft.AspNetCore.Http;
using Microsoft.AspNetCore.Http.Features;
using Microsoft.AspNetCore.Server.Kestrel.Https;

namespace KernelTls.AspNetCore.Tests;

/// <summary>
/// Runs a third-party TLS server: nginx or haproxy in front of the tests' application, or Kestrel, each with stock TLS.
/// Each response reports the server's view of its connection.
/// </summary>
internal sealed class ForeignServer : IAsyncDisposable
{
    private const string KernelNginx = "nginx with kernel TLS";
    private const string Header = "Seen";
    private readonly bool _isInKernel;
    private readonly Server _application;
    private readonly IDisposable? _front;
    private readonly TlsStatistics _before;

    private ForeignServer(bool isInKernel, Server application, IDisposable? front, int port, TlsStatistics before)
    {
        (_isInKernel, _application, _front, _before) = (isInKernel && KtlsPlatform.Probe().IsSupported, application, front, before);
        Address = new Uri($"https://localhost:{port}");
    }

    public static IReadOnlyList<string> Kinds { get; } = ["nginx", KernelNginx, "haproxy", "Kestrel"];

    public Uri Address { get; }

    /// <summary>Starts a server.</summary>
    /// <param name="kind">One of <see cref="Kinds"/>.</param>
    /// <param name="wantsCertificate">Whether clients must send a certificate.</param>
    public static async Task<ForeignServer> StartAsync(string kind, bool wantsCertificate = false)
    {
        TlsStatistics before = Read();
        Server application = await Server.StartAsync(
            TlsMode.Stock,
            https =>
            {
                https.ClientCertificateMode = wantsCertificate ? ClientCertificateMode.RequireCertificate : ClientCertificateMode.NoCertificate;
                https.OnAuthenticate = (_, options) => options.CertificateChainPolicy = Certificates.Trust();
            },
            application: application => application.Use(TellAsync));
        IDisposable? front = null;
        try
        {
            int port;
            switch (kind)
            {
                case "Kestrel":
                    port = application.Https.Port;
                    break;
                case "haproxy":
                    Haproxy haproxy = StartHaproxy(application.Http.Port, wantsCertificate);
                    (front, port) = (haproxy, haproxy.Port);
                    await haproxy.StartedAsync();
                    break;
                default:
                    Nginx nginx = StartNginx(application.Http.Port, kind == KernelNginx, wantsCertificate);
                    (front, port) = (nginx, nginx.Port);
                    await nginx.StartedAsync();
                    break;
            }

            return new ForeignServer(kind == KernelNginx, application, front, port, before);
        }
        catch
        {
            front?.Dispose();
            await application.DisposeAsync();
            throw;
        }
    }

    /// <summary>
    /// Sends a request, checks that the response is this many bytes of the pattern, and returns the server's view of
    /// the connection.
    /// </summary>
    public async Task<Sighting> GetAsync(HttpClient client, int size)
    {
        using HttpResponseMessage response = await client.GetAsync(new Uri(Address, $"/bytes/{size}")).InTime($"{size} bytes");
        byte[] body = await response.EnsureSuccessStatusCode().Content.ReadAsByteArrayAsync();
        Assert.Equal(size, body.Length);
        Pattern.AssertAt(0, body);
        return Sighting.Of(response);
    }

    /// <summary>Sends this many bytes of the pattern, which the application checks.</summary>
    public async Task<Sighting> PostAsync(HttpClient client, int size)
    {
        using ByteArrayContent content = new(Pattern.Take(size));
        using HttpResponseMessage response = await client.PostAsync(new Uri(Address, "/check"), content).InTime($"an upload of {size} bytes");
        string answer = await response.EnsureSuccessStatusCode().Content.ReadAsStringAsync();
        Assert.StartsWith($"{size} HTTP/", answer, StringComparison.Ordinal);
        return Sighting.Of(response);
    }

    /// <summary>
    /// Asserts that the kernel took the keys of this many connections, of the client's end in Kernel mode and of the
    /// server's if it is nginx with kernel TLS, and that every record was decrypted.
    /// </summary>
    /// <param name="mode">The client's mode.</param>
    /// <param name="count">The number of connections that the client has used.</param>
    /// <param name="version">Their version.</param>
    /// <param name="others">The number of connections that it may have made and not used.</param>
    public void AssertConnections(TlsMode mode, int count, SslProtocols version, int others = 0)
    {
        TlsStatistics now = Read();
        bool receives = version != SslProtocols.Tls13 || KtlsPlatform.Probe().OpenSslVersion >= new Version(3, 2);
        int ends = EndsOf(mode, count);
        int most = EndsOf(mode, count + others);
        Assert.InRange(now.SendSoftware - _before.SendSoftware, ends, most);
        Assert.InRange(now.ReceiveSoftware - _before.ReceiveSoftware, receives ? ends : 0, receives ? most : 0);
        Assert.Equal(_before.DecryptError, now.DecryptError);
    }

    private int EndsOf(TlsMode mode, int connections) => connections * ((mode == TlsMode.Kernel ? 1 : 0) + (_isInKernel ? 1 : 0));

    /// <summary>Asserts that no connection is left in the kernel. The clients must be disposed before.</summary>
    public async ValueTask DisposeAsync()
    {
        _front?.Dispose();
        await _application.DisposeAsync();
        if (KtlsPlatform.Probe().IsSupported)
        {
            await TlsStatistics.UntilAsync(
                now => now.CurrentSendSoftware <= _before.CurrentSendSoftware && now.CurrentReceiveSoftware <= _before.CurrentReceiveSoftware,
                "the kernel to let go of the connections");
        }
    }

    private static TlsStatistics Read() => KtlsPlatform.Probe().IsSupported ? TlsStatistics.Read() : default;

    /// <summary>
    /// Adds the server's view to the response. Kestrel does not know whether it has resumed a session.
    /// </summary>
    private static Task TellAsync(HttpContext context, Func<Task> next)
    {
        if (context.Request.IsHttps)
        {
            SslProtocols version = context.Features.GetRequiredFeature<ITlsHandshakeFeature>().Protocol;
            context.Response.Headers[Header] = string.Join(
                '|', context.Connection.RemotePort, version == SslProtocols.Tls13 ? "TLSv1.3" : "TLSv1.2", "?", context.Connection.ClientCertificate?.Subject);
        }

        return next();
    }

    private static Nginx StartNginx(int application, bool isInKernel, bool wantsCertificate) => new(
        directory =>
        {
            Certificates.WritePem(Certificates.Ecdsa, directory);
            Certificates.WriteAuthority(directory);
        },
        (directory, port) => $$"""
            listen 127.0.0.1:{{port}} ssl http2;
            ssl_certificate {{directory}}/certificate.pem;
            ssl_certificate_key {{directory}}/key.pem;
            ssl_protocols TLSv1.2 TLSv1.3;
            ssl_conf_command Options {{(isInKernel ? "" : "-")}}KTLS;
            {{(wantsCertificate ? $"ssl_verify_client on; ssl_client_certificate {directory}/authority.pem;" : "")}}
            client_max_body_size 0;
            add_header {{Header}} "$remote_port|$ssl_protocol|$ssl_session_reused|$ssl_client_s_dn";
            location / {
                proxy_pass http://upstream;
                proxy_http_version 1.1;
                proxy_set_header Connection "";
            }
            """,
        $"server 127.0.0.1:{application}; keepalive 20;");

    private static Haproxy StartHaproxy(int application, bool wantsCertificate) => new(
        directory =>
        {
            (string certificate, string key) = Certificates.WritePem(Certificates.Ecdsa, directory);
            File.AppendAllText(certificate, "\n" + File.ReadAllText(key));
            Certificates.WriteAuthority(directory);
        },
        port => $"""
            bind 127.0.0.1:{port} ssl crt certificate.pem alpn h2,http/1.1 {(wantsCertificate ? "verify required ca-file authority.pem" : "")}
                http-response set-header {Header} "%[src_port]|%[ssl_fc_protocol]|%[ssl_fc_is_resumed]|CN=%[ssl_c_s_dn(CN)]"
            """,
        application);

    /// <summary>Contains the server's view of the connection of a response.</summary>
    /// <param name="ClientPort">The client's port, which distinguishes connections.</param>
    /// <param name="Version">The TLS version.</param>
    /// <param name="Resumed">Whether the handshake resumed a session, or null if the server does not report it.</param>
    /// <param name="Certificate">The subject of the client's certificate.</param>
    internal sealed record Sighting(string ClientPort, SslProtocols Version, bool? Resumed, string Certificate)
    {
        public static Sighting Of(HttpResponseMessage response)
        {
            string[] fields = Assert.Single(response.Headers.GetValues(Header)).Split('|');
            return new Sighting(
                fields[0],
                fields[1] switch
                {
                    "TLSv1.2" => SslProtocols.Tls12,
                    "TLSv1.3" => SslProtocols.Tls13,
                    _ => throw new InvalidDataException(fields[1]),
                },
                fields[2] switch
                {
                    "r" or "1" => true,
                    "." or "0" => false,
                    "?" => null,
                    _ => throw new InvalidDataException(fields[2]),
                },
                fields[3]);
        }
    }
}

using System.Net;
using System.Security.Authentication;
using System.Text;
using System.Text.RegularExpressions;
using KernelTls.Tests;

namespace KernelTls.FunctionalTests;

/// <summary>
/// Tests nginx with its own kernel TLS: both ends of a connection are in the kernel, and only one of them is ours.
/// </summary>
public class NginxInteropTests : InteropTest
{
    private const int Size = 3_000_001;

    /// <summary>The second connection resumes the first one's session.</summary>
    [Theory]
    [MemberData(nameof(Versions))]
    public async Task It_sends_files_out_of_the_kernel_to_our_stream(SslProtocols version)
    {
        TlsStatistics before = TlsStatistics.Read();
        using Nginx nginx = await ServeFilesAsync(version);
        for (int connection = 0; connection < 2; connection++)
        {
            await using KtlsStream client = await ConnectAsync(nginx.Port, version, o => o.AllowTlsResume = true);

            // The second response on a connection follows the first one's last record.
            for (int i = 0; i < 2; i++)
            {
                await client.WriteAsync("GET /file HTTP/1.1\r\nHost: localhost\r\n\r\n"u8.ToArray()).InTime("the request");
                string header = await ReadHeaderAsync(client);
                Assert.StartsWith("HTTP/1.1 200 OK\r\n", header, StringComparison.Ordinal);
                Assert.Contains($"\r\nContent-Length: {Size}\r\n", header, StringComparison.Ordinal);
                await Pattern.ReceiveAsync(client, Size).InTime("the file");
            }
        }

        AssertBothEndsCounted(before, nginx, version, connections: 2);
        Assert.Equal(1, Regex.Count(nginx.Log, "SSL reused session"));
        Assert.Contains("SSL_sendfile: ", nginx.Log, StringComparison.Ordinal);
    }

    [Theory]
    [InlineData("1.1")]
    [InlineData("2.0")]
    public async Task It_serves_our_HttpClient(string httpVersion)
    {
        TlsStatistics before = TlsStatistics.Read();
        using Nginx nginx = await ServeFilesAsync(SslProtocols.Tls13);
        using SocketsHttpHandler handler = new() { UseProxy = false };
        handler.SslOptions.CertificateChainPolicy = Certificates.Trust();
        using HttpClient client = new(handler.UseKernelTls(Modes.OptionsOf(TlsMode.Kernel)))
        {
            DefaultRequestVersion = Version.Parse(httpVersion),
            DefaultVersionPolicy = HttpVersionPolicy.RequestVersionExact,
            Timeout = Limits.Wait,
        };

        using HttpResponseMessage response = await client.GetAsync(
            new Uri($"https://localhost:{nginx.Port}/file"), HttpCompletionOption.ResponseHeadersRead).InTime("the answer");
        Assert.Equal(Version.Parse(httpVersion), response.Version);
        Assert.Equal("nginx", response.Headers.Server.Single().Product?.Name);
        using Stream body = await response.Content.ReadAsStreamAsync();
        await Pattern.ReceiveAsync(body, Size).InTime("the file");
        Assert.Equal(0, await body.ReadAsync(new byte[1]).InTime("the end"));
        AssertBothEndsCounted(before, nginx, SslProtocols.Tls13);
    }

    /// <summary>The upstream's second connection resumes the first one's session.</summary>
    [Theory]
    [MemberData(nameof(Versions))]
    public async Task Its_upstream_is_our_stream(SslProtocols version)
    {
        TlsStatistics before = TlsStatistics.Read();
        using ForeignPeer listener = new();
        using Nginx nginx = await Nginx.StartProxyAsync(listener.Port, version, "proxy_ssl_conf_command Options KTLS;");
        using SocketsHttpHandler handler = new() { UseProxy = false };
        using HttpClient client = new(handler) { BaseAddress = new Uri($"http://127.0.0.1:{nginx.Port}"), Timeout = Limits.Wait };

        Task<byte[]> downloading = client.GetByteArrayAsync(new Uri("/download", UriKind.Relative));
        await using (KtlsStream first = await AcceptAsync(listener, version))
        {
            Assert.StartsWith("GET /download HTTP/1.1\r\n", await ReadHeaderAsync(first), StringComparison.Ordinal);
            await first.WriteAsync(Encoding.ASCII.GetBytes($"HTTP/1.1 200 OK\r\nContent-Length: {Size}\r\n\r\n")).InTime("the header");
            await Pattern.SendAsync(first, Size).InTime("the body to nginx");
            byte[] download = await downloading.InTime("the download from nginx");
            Assert.Equal(Size, download.Length);
            Pattern.AssertAt(0, download);
        }

        using ByteArrayContent content = new(Pattern.Take(Size));
        Task<HttpResponseMessage> uploading = client.PostAsync(new Uri("/upload", UriKind.Relative), content);
        await using KtlsStream second = await AcceptAsync(listener, version);
        string request = await ReadHeaderAsync(second);
        Assert.StartsWith("POST /upload HTTP/1.1\r\n", request, StringComparison.Ordinal);
        Assert.Contains($"\r\nContent-Length: {Size}\r\n", request, StringComparison.Ordinal);
        await Pattern.ReceiveAsync(second, Size).InTime("the body from nginx");
        await second.WriteAsync("HTTP/1.1 204 No Content\r\n\r\n"u8.ToArray()).InTime("the answer");
        using HttpResponseMessage response = await uploading.InTime("the answer from nginx");
        Assert.Equal(HttpStatusCode.NoContent, response.StatusCode);

        AssertBothEndsCounted(before, nginx, version, connections: 2);
        Assert.Equal(1, Regex.Count(nginx.Log, "SSL reused session"));
    }

    /// <summary>
    /// Asserts that the kernel has the keys of both ends, and that nginx reports the same for its end. Both ends send
    /// in the kernel in every cell. With OpenSSL before 3.2 neither receives TLS 1.3 there.
    /// </summary>
    private static void AssertBothEndsCounted(TlsStatistics before, Nginx nginx, SslProtocols version, int connections = 1)
    {
        TlsStatistics now = TlsStatistics.Read();
        Assert.Equal(2 * connections, now.SendSoftware - before.SendSoftware);
        Assert.Equal(ReceivingEnds(version) * connections, now.ReceiveSoftware - before.ReceiveSoftware);
        Assert.Equal(connections, Regex.Count(nginx.Log, @"BIO_get_ktls_send\(\): 1"));
    }

    private static async Task<Nginx> ServeFilesAsync(SslProtocols version)
    {
        Nginx nginx = new(
            directory =>
            {
                Certificates.WritePem(Certificates.Rsa, directory);
                File.WriteAllBytes(Path.Combine(directory, "file"), Pattern.Take(Size));
            },
            (directory, port) => $"""
                listen 127.0.0.1:{port} ssl http2;
                root {directory};
                sendfile on;
                ssl_certificate {directory}/certificate.pem;
                ssl_certificate_key {directory}/key.pem;
                ssl_protocols {Nginx.NameOf(version)};
                ssl_conf_command Options KTLS;
                """);
        await nginx.StartedAsync();
        return nginx;
    }
}

using System.Net;
using System.Net.Security;
using System.Net.Sockets;
using System.Security.Authentication;
using KernelTls.Tests;

namespace KernelTls.FunctionalTests;

/// <summary>
/// Tests SocketsHttpHandler.UseKernelTls against stock Kestrel. Also run on OpenSSL without the kernel, on any host.
/// </summary>
public class HttpClientTests
{
    private static readonly Version[] s_versions = [HttpVersion.Version11, HttpVersion.Version20];

    public static TheoryData<TlsMode, string> All
    {
        get
        {
            TheoryData<TlsMode, string> data = [];
            foreach (TlsMode mode in Modes.OnOpenSsl)
            {
                foreach (Version version in s_versions)
                {
                    data.Add(mode, version.ToString());
                }
            }

            return data;
        }
    }

    public static TheoryData<TlsMode> OnOpenSsl => [.. Modes.OnOpenSsl];

    [Theory]
    [MemberData(nameof(All))]
    public async Task A_large_download_is_intact(TlsMode mode, string version)
    {
        const long Size = 20_000_001;
        await using HttpServer server = await HttpServer.StartAsync();
        using Client client = new(mode, version);

        using HttpResponseMessage response = await client.Http.GetAsync(
            new Uri(server.Https, $"/bytes/{Size}"), HttpCompletionOption.ResponseHeadersRead).InTime();

        Assert.Equal(Version.Parse(version), response.Version);
        using Stream body = await response.Content.ReadAsStreamAsync();
        await Pattern.ReceiveAsync(body, Size).InTime();
        Assert.Equal(0, await body.ReadAsync(new byte[1]).InTime());
        client.AssertIn(mode);
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task A_large_upload_is_intact(TlsMode mode, string version)
    {
        const int Size = 10_000_001;
        await using HttpServer server = await HttpServer.StartAsync();
        using Client client = new(mode, version);
        using ByteArrayContent content = new(Pattern.Take(Size));

        using HttpResponseMessage response = await client.Http.PostAsync(new Uri(server.Https, "/check"), content).InTime();

        Assert.Equal(
            $"{Size} HTTP/{(version == "2.0" ? "2" : version)}", await response.Content.ReadAsStringAsync().InTime());
        client.AssertIn(mode);
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task Many_requests_at_once_get_their_own_answers(TlsMode mode, string version)
    {
        await using HttpServer server = await HttpServer.StartAsync();
        using Client client = new(mode, version);

        byte[][] bodies = await Task.WhenAll(Enumerable.Range(1, 50).Select(
            i => client.Http.GetByteArrayAsync(new Uri(server.Https, $"/bytes/{i * 1_000}")))).InTime();

        for (int i = 1; i <= 50; i++)
        {
            Assert.Equal(i * 1_000, bodies[i - 1].Length);
            Pattern.AssertAt(0, bodies[i - 1]);
        }

        client.AssertIn(mode);
        if (version == "2.0")
        {
            Assert.Single(client.Transports);
        }
    }

    [Theory]
    [MemberData(nameof(OnOpenSsl))]
    public async Task A_version_is_negotiated_where_the_request_leaves_it_open(TlsMode mode)
    {
        await using HttpServer server = await HttpServer.StartAsync();
        using Client client = new(mode, "1.1");
        client.Http.DefaultVersionPolicy = HttpVersionPolicy.RequestVersionOrHigher;

        using HttpResponseMessage response = await client.Http.GetAsync(new Uri(server.Https, "/bytes/10")).InTime();

        Assert.Equal(HttpVersion.Version20, response.Version);
    }

    [Theory]
    [MemberData(nameof(OnOpenSsl))]
    public async Task Plain_http_gets_the_bare_socket(TlsMode mode)
    {
        await using HttpServer server = await HttpServer.StartAsync();
        using Client client = new(mode, "1.1");

        byte[] body = await client.Http.GetByteArrayAsync(new Uri(server.Http, "/bytes/1000")).InTime();

        Pattern.AssertAt(0, body);
        Assert.IsType<NetworkStream>(Assert.Single(client.Transports));
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task A_certificate_for_another_name_is_refused_as_the_stock_handler_does(TlsMode mode, string version)
    {
        await using HttpServer server = await HttpServer.StartAsync(Certificates.WrongName);
        using Client client = new(mode, version);

        HttpRequestException e = await Assert.ThrowsAsync<HttpRequestException>(
            () => client.Http.GetAsync(new Uri(server.Https, "/bytes/10")).InTime());

        Assert.IsType<AuthenticationException>(e.InnerException);
    }

    [Theory]
    [MemberData(nameof(OnOpenSsl))]
    public async Task The_handler_s_callback_judges_the_certificate(TlsMode mode)
    {
        await using HttpServer server = await HttpServer.StartAsync(Certificates.WrongName);
        using Client client = new(mode, "2.0");
        SslPolicyErrors? seen = null;
        client.Handler.SslOptions.RemoteCertificateValidationCallback = (_, _, _, errors) =>
        {
            seen = errors;
            return true;
        };

        using HttpResponseMessage response = await client.Http.GetAsync(new Uri(server.Https, "/bytes/10")).InTime();

        Assert.Equal(SslPolicyErrors.RemoteCertificateNameMismatch, seen);
        client.AssertIn(mode);
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task Through_a_proxy_s_tunnel_TLS_is_the_stock_one(TlsMode mode, string version)
    {
        await using ConnectProxy proxy = new();
        await using HttpServer server = await HttpServer.StartAsync();
        using Client client = new(mode, version);
        client.Handler.UseProxy = true;
        client.Handler.Proxy = new WebProxy(proxy.Address);

        using HttpResponseMessage response = await client.Http.GetAsync(new Uri(server.Https, "/bytes/100000")).InTime();

        Assert.Equal(Version.Parse(version), response.Version);
        Pattern.AssertAt(0, await response.Content.ReadAsByteArrayAsync().InTime());
        Assert.Equal(1, proxy.Tunnels);
        Assert.All(client.Transports, t => Assert.IsNotType<KtlsStream>(t));
    }

    [Theory]
    [MemberData(nameof(OnOpenSsl))]
    public async Task A_cancelled_request_ends_and_the_next_one_works(TlsMode mode)
    {
        await using HttpServer server = await HttpServer.StartAsync();
        using Client client = new(mode, "2.0");
        using (HttpResponseMessage response = await client.Http.GetAsync(
            new Uri(server.Https, "/bytes/2000000000"), HttpCompletionOption.ResponseHeadersRead).InTime())
        {
            using Stream body = await response.Content.ReadAsStreamAsync();
            await Pattern.ReceiveAsync(body, 1_000_000).InTime();
        }

        Pattern.AssertAt(0, await client.Http.GetByteArrayAsync(new Uri(server.Https, "/bytes/5000")).InTime());
        client.AssertIn(mode);
    }

    [Fact]
    public async Task Null_and_a_handler_in_use_are_refused()
    {
        await using HttpServer server = await HttpServer.StartAsync();
        using SocketsHttpHandler handler = new() { UseProxy = false };
        using HttpClient client = new(handler);

        Assert.Throws<ArgumentNullException>(() => SocketsHttpHandlerKtlsExtensions.UseKernelTls(null!));
        Assert.Same(handler, handler.UseKernelTls());
        await client.GetByteArrayAsync(new Uri(server.Http, "/bytes/1")).InTime();
        Assert.Throws<InvalidOperationException>(() => handler.UseKernelTls());
    }

    /// <summary>An HttpClient on kernel TLS that stores its connections' streams.</summary>
    private sealed class Client : IDisposable
    {
        public Client(TlsMode mode, string version)
        {
            Handler = new SocketsHttpHandler { UseProxy = false };
            Handler.SslOptions.CertificateChainPolicy = Certificates.Trust();
            Handler.UseKernelTls(Modes.OptionsOf(mode));
            Handler.PlaintextStreamFilter = (context, _) =>
            {
                Transports.Add(context.PlaintextStream);
                return ValueTask.FromResult(context.PlaintextStream);
            };
            Http = new HttpClient(Handler)
            {
                DefaultRequestVersion = Version.Parse(version),
                DefaultVersionPolicy = HttpVersionPolicy.RequestVersionExact,
                Timeout = Limits.Wait,
            };
        }

        public SocketsHttpHandler Handler { get; }

        public HttpClient Http { get; }

        public System.Collections.Concurrent.ConcurrentBag<Stream> Transports { get; } = [];

        public void AssertIn(TlsMode mode)
        {
            Assert.NotEmpty(Transports);
            Assert.All(Transports, t => Modes.AssertIn(mode, Assert.IsType<KtlsStream>(t)));
        }

        public void Dispose() => Http.Dispose();
    }
}

using System.Net;
using System.Net.Security;
using System.Security.Authentication;
using System.Text;
using KernelTls.Tests;
using Microsoft.AspNetCore.Server.Kestrel.Core;

namespace KernelTls.AspNetCore.Tests;

/// <summary>Tests requests and responses of the stock client in every mode.</summary>
public class HttpTests
{
    public static TheoryData<TlsMode> All => [.. Modes.Every];

    public static TheoryData<TlsMode, SslProtocols> AllVersions => Modes.All;

    public static TheoryData<TlsMode, string> BothProtocols => Modes.With("1.1", "2.0");

    [Theory]
    [MemberData(nameof(AllVersions))]
    public async Task The_connection_is_in_the_mode_and_has_its_features(TlsMode mode, SslProtocols version)
    {
        await using Server server = await Server.StartAsync(mode, https => https.SslProtocols = version);
        using HttpClient client = Server.CreateClient("2.0");

        Assert.Equal(Offloads.Expected(mode, version), await client.GetStringAsync(new Uri(server.Https, "/offload")).InTime());
        string[] features = (await client.GetStringAsync(new Uri(server.Https, "/features")).InTime()).Split('\n');

        Assert.Equal(["https", version.ToString()], features[..2]);
        Assert.Equal(["h2", "none", "stream", "connected", "127.0.0.1", "port"], features[3..]);
        Assert.True(Enum.TryParse(features[2], out TlsCipherSuite _), features[2]);
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task Kept_alive_connections_are_used_again(TlsMode mode)
    {
        await using Server server = await Server.StartAsync(mode);
        using HttpClient client = Server.CreateClient();
        HashSet<string> connections = [];

        for (int i = 0; i < 100; i++)
        {
            connections.Add(await client.GetStringAsync(new Uri(server.Https, "/connection")).InTime());
        }

        Assert.Equal(13, Assert.Single(connections).Length);
        await Offloads.AssertInAsync(mode, client, server.Https);
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task Connection_close_closes(TlsMode mode)
    {
        await using Server server = await Server.StartAsync(mode);
        using HttpClient client = Server.CreateClient();
        client.DefaultRequestHeaders.ConnectionClose = true;
        HashSet<string> connections = [];

        for (int i = 0; i < 20; i++)
        {
            connections.Add(await client.GetStringAsync(new Uri(server.Https, "/connection")).InTime());
        }

        Assert.Equal(20, connections.Count);
    }

    [Theory]
    [MemberData(nameof(BothProtocols))]
    public async Task Responses_of_every_size_arrive(TlsMode mode, string version)
    {
        await using Server server = await Server.StartAsync(mode);
        using HttpClient client = Server.CreateClient(version);

        foreach (int size in new[] { 0, 1, 4_095, 4_096, 4_097, 16_384, 65_536, (1 << 20) + 7 })
        {
            byte[] body = await client.GetByteArrayAsync(new Uri(server.Https, $"/bytes/{size}")).InTime($"{size} bytes");
            Assert.Equal(size, body.Length);
            Pattern.AssertAt(0, body);
        }

        await Offloads.AssertInAsync(mode, client, server.Https);
    }

    [Theory]
    [MemberData(nameof(BothProtocols))]
    public async Task A_large_response_is_intact(TlsMode mode, string version)
    {
        const long Size = 20_000_001;
        await using Server server = await Server.StartAsync(mode);
        using HttpClient client = Server.CreateClient(version);

        using HttpResponseMessage response = await client.GetAsync(
            new Uri(server.Https, $"/bytes/{Size}"), HttpCompletionOption.ResponseHeadersRead).InTime();
        using Stream body = await response.Content.ReadAsStreamAsync();

        await Pattern.ReceiveAsync(body, Size).InTime();
        Assert.Equal(0, await body.ReadAsync(new byte[1]).InTime());
    }

    [Theory]
    [MemberData(nameof(BothProtocols))]
    public async Task Chunked_responses_arrive(TlsMode mode, string version)
    {
        await using Server server = await Server.StartAsync(mode);
        using HttpClient client = Server.CreateClient(version);

        byte[] body = await client.GetByteArrayAsync(new Uri(server.Https, "/chunked/100001")).InTime();

        Assert.Equal(100_001, body.Length);
        Pattern.AssertAt(0, body);
    }

    [Theory]
    [MemberData(nameof(BothProtocols))]
    public async Task Bodies_of_requests_arrive(TlsMode mode, string version)
    {
        await using Server server = await Server.StartAsync(mode);
        using HttpClient client = Server.CreateClient(version);

        foreach (int size in new[] { 0, 1, 2_047, 4_097, 65_536, 3_000_001 })
        {
            foreach (bool chunked in new[] { false, true })
            {
                using HttpRequestMessage request = new(HttpMethod.Post, new Uri(server.Https, "/check"))
                {
                    Content = new ByteArrayContent(Pattern.Take(size)),
                    Version = client.DefaultRequestVersion,
                    VersionPolicy = HttpVersionPolicy.RequestVersionExact,
                };
                request.Headers.TransferEncodingChunked = chunked && version == "1.1";
                using HttpResponseMessage response = await client.SendAsync(request).InTime($"{size} bytes");
                Assert.Equal(
                    $"{size} HTTP/{(version == "2.0" ? "2" : version)}", await response.Content.ReadAsStringAsync().InTime());
            }
        }
    }

    [Theory]
    [MemberData(nameof(BothProtocols))]
    public async Task Many_requests_at_once_get_their_own_answers(TlsMode mode, string version)
    {
        await using Server server = await Server.StartAsync(mode);
        using HttpClient client = Server.CreateClient(version);

        byte[][] bodies = await Task.WhenAll(Enumerable.Range(1, 50).Select(
            i => client.GetByteArrayAsync(new Uri(server.Https, $"/bytes/{i * 1_000}")))).InTime();

        for (int i = 1; i <= 50; i++)
        {
            Assert.Equal(i * 1_000, bodies[i - 1].Length);
            Pattern.AssertAt(0, bodies[i - 1]);
        }
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task Pipelined_requests_are_answered_in_order(TlsMode mode)
    {
        const int Requests = 50;
        await using Server server = await Server.StartAsync(mode);
        await using SslStream client = await server.ConnectAsync();

        StringBuilder requests = new();
        for (int i = 1; i <= Requests; i++)
        {
            requests.Append($"GET /bytes/{i} HTTP/1.1\r\nHost: localhost\r\n{(i == Requests ? "Connection: close\r\n" : "")}\r\n");
        }

        await client.WriteAsync(Encoding.ASCII.GetBytes(requests.ToString())).InTime();
        using StreamReader reader = new(client, Encoding.Latin1);
        string answers = await reader.ReadToEndAsync().InTime();

        string[] heads = answers.Split("HTTP/1.1 200 OK\r\n");
        Assert.Equal(Requests + 1, heads.Length);
        for (int i = 1; i <= Requests; i++)
        {
            Assert.Contains($"Content-Length: {i}\r\n", heads[i], StringComparison.Ordinal);
        }
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task A_plain_endpoint_beside_it_is_the_stock_one(TlsMode mode)
    {
        await using Server server = await Server.StartAsync(mode, kestrel: kestrel => kestrel.Limits.MaxConcurrentConnections = 100);
        using HttpClient client = Server.CreateClient();

        Pattern.AssertAt(0, await client.GetByteArrayAsync(new Uri(server.Http, "/bytes/1000000")).InTime());
        using ByteArrayContent content = new(Pattern.Take(1_000_000));
        using HttpResponseMessage posted = await client.PostAsync(new Uri(server.Http, "/check"), content).InTime();

        Assert.Equal("1000000 HTTP/1.1", await posted.Content.ReadAsStringAsync().InTime());
        Assert.Equal("stock", await client.GetStringAsync(new Uri(server.Http, "/offload")).InTime());
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task Prior_knowledge_of_HTTP_2_works_on_a_plain_endpoint(TlsMode mode)
    {
        await using Server server = await Server.StartAsync(
            mode, kestrel => kestrel.Listen(IPAddress.Loopback, 0, endpoint => endpoint.Protocols = HttpProtocols.Http2), null);
        using HttpClient client = Server.CreateClient("2.0");

        Pattern.AssertAt(0, await client.GetByteArrayAsync(new Uri(server.Http, "/bytes/1000000")).InTime());
    }
}

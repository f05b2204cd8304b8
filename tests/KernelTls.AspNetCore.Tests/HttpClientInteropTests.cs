using System.Net;
using System.Security.Authentication;
using KernelTls.Tests;

namespace KernelTls.AspNetCore.Tests;

/// <summary>Tests HttpClient, with kernel TLS and the stock one, against third-party servers.</summary>
[Trait("loop", "outer-kernel")]
public class HttpClientInteropTests
{
    private static readonly string[] s_http = ["1.1", "2.0"];
    private static readonly SslProtocols[] s_versions = [SslProtocols.Tls12, SslProtocols.Tls13];

    public static TheoryData<TlsMode, string, SslProtocols, string> Everything =>
        [.. from mode in Modes.Costly
            from kind in ForeignServer.Kinds
            from version in s_versions
            from http in s_http
            select new TheoryDataRow<TlsMode, string, SslProtocols, string>(mode, kind, version, http)];

    public static TheoryData<TlsMode, string, SslProtocols> EveryVersion =>
        [.. from mode in Modes.Costly
            from kind in ForeignServer.Kinds
            from version in s_versions
            select new TheoryDataRow<TlsMode, string, SslProtocols>(mode, kind, version)];

    public static TheoryData<TlsMode, string, string> BothProtocols =>
        [.. from mode in Modes.Costly
            from kind in ForeignServer.Kinds
            from http in s_http
            select new TheoryDataRow<TlsMode, string, string>(mode, kind, http)];

    [Theory]
    [MemberData(nameof(Everything))]
    public async Task Bodies_of_every_size_pass_both_ways_on_one_connection(TlsMode mode, string kind, SslProtocols version, string http)
    {
        await using ForeignServer server = await ForeignServer.StartAsync(kind);
        using ModeClient client = CreateClient(mode, http, version);
        HashSet<ForeignServer.Sighting> seen = [];

        foreach (int size in new[] { 0, 1, 65_536, Cell.IsLab ? 1_000_001 : 5_000_001 })
        {
            seen.Add(await server.GetAsync(client.Http, size));
            seen.Add(await server.PostAsync(client.Http, size));
        }

        ForeignServer.Sighting sighting = Assert.Single(seen);
        Assert.Equal(version, sighting.Version);
        Assert.NotEqual(true, sighting.Resumed);
        Assert.Single(client.Streams);
        server.AssertConnections(mode, 1, version);
    }

    /// <summary>
    /// Sends KERNELTLS_REQUESTS requests, on about as many connections as the protocol needs. The stock HttpClient, too, opens
    /// a few more for HTTP/1.1 than it has requests at a time. nginx closes a connection after a thousand.
    /// </summary>
    [Theory]
    [MemberData(nameof(BothProtocols))]
    public async Task Many_requests_get_their_own_answers(TlsMode mode, string kind, string http)
    {
        await using ForeignServer server = await ForeignServer.StartAsync(kind);
        using ModeClient client = CreateClient(mode, http);

        await Parallel.ForAsync(0, Load.Requests, new ParallelOptions { MaxDegreeOfParallelism = Load.Connections }, async (i, _) =>
        {
            int size = i * 7 % 10_000;
            await (i % 10 == 0 ? server.PostAsync(client.Http, size) : server.GetAsync(client.Http, size));
        });

        int connections = client.Streams.Count;
        Assert.InRange(connections, 1, (http == "2.0" ? 1 : 2 * Load.Connections) + (Load.Requests / 500));
        // A connection that HttpClient gave up, because another one has served its request, was never a stream.
        server.AssertConnections(mode, connections, SslProtocols.Tls13, others: Load.Connections);
    }

    /// <summary>Each connection after the first resumes a session of an earlier one.</summary>
    [Theory]
    [MemberData(nameof(EveryVersion))]
    public Task Connections_that_close_are_resumed(TlsMode mode, string kind, SslProtocols version) =>
        CloseAndConnectAgainAsync(mode, kind, version, certificate: false);

    /// <summary>The server sees the same client each time.</summary>
    [Theory]
    [MemberData(nameof(EveryVersion))]
    public Task Connections_that_close_are_resumed_with_the_clients_certificate(TlsMode mode, string kind, SslProtocols version) =>
        CloseAndConnectAgainAsync(mode, kind, version, certificate: true);

    /// <summary>nginx completes the handshake and responds with 400; the others close the connection.</summary>
    [Theory]
    [MemberData(nameof(BothProtocols))]
    public async Task Without_the_certificate_that_the_server_wants_there_is_no_answer(TlsMode mode, string kind, string http)
    {
        await using ForeignServer server = await ForeignServer.StartAsync(kind, wantsCertificate: true);
        using ModeClient client = CreateClient(mode, http);

        if (kind.StartsWith("nginx", StringComparison.Ordinal))
        {
            using HttpResponseMessage response = await client.Http.GetAsync(new Uri(server.Address, "/bytes/1")).InTime("the refusal");
            Assert.Equal(HttpStatusCode.BadRequest, response.StatusCode);
        }
        else
        {
            await Assert.ThrowsAsync<HttpRequestException>(
                () => client.Http.GetAsync(new Uri(server.Address, "/bytes/1")).InTime("the refusal"));
        }
    }

    [Theory]
    [MemberData(nameof(BothProtocols))]
    public async Task A_pooled_connection_is_replaced_at_the_end_of_its_life_time(TlsMode mode, string kind, string http)
    {
        await using ForeignServer server = await ForeignServer.StartAsync(kind);
        using ModeClient client = CreateClient(
            mode, http, configure: handler => handler.PooledConnectionLifetime = TimeSpan.FromMilliseconds(200));
        HashSet<string> ports = [];

        for (long deadline = Environment.TickCount64 + (long)Limits.Wait.TotalMilliseconds; ports.Count < 3;)
        {
            Assert.True(Environment.TickCount64 < deadline, $"Waited {Limits.Wait.TotalSeconds} s for a third connection");
            ports.Add((await server.GetAsync(client.Http, 10_000)).ClientPort);
        }

        server.AssertConnections(mode, client.Streams.Count, SslProtocols.Tls13);
    }

    private static async Task CloseAndConnectAgainAsync(TlsMode mode, string kind, SslProtocols version, bool certificate)
    {
        const int Connections = 5;
        await using ForeignServer server = await ForeignServer.StartAsync(kind, certificate);
        using ModeClient client = CreateClient(
            mode, "1.1", version, handler => handler.SslOptions.ClientCertificateContext = certificate ? Certificates.ClientContext : null);
        client.Http.DefaultRequestHeaders.ConnectionClose = true;
        HashSet<string> ports = [];

        for (int i = 0; i < Connections; i++)
        {
            ForeignServer.Sighting sighting = await server.GetAsync(client.Http, 10_000);
            Assert.Equal(certificate, sighting.Certificate == Certificates.Client.Subject);
            Assert.True(ports.Add(sighting.ClientPort));
            if (client.Streams[i] is KtlsStream stream)
            {
                // The first connection may resume a session that another test has left for this host.
                Assert.True(stream.IsResumed || i == 0, $"Connection {i} was not resumed");
                Assert.Equal(stream.IsResumed, sighting.Resumed ?? stream.IsResumed);
            }
        }

        Assert.Equal(Connections, client.Streams.Count);
        server.AssertConnections(mode, Connections, version);
    }

    private static ModeClient CreateClient(
        TlsMode mode, string http, SslProtocols version = SslProtocols.Tls13, Action<SocketsHttpHandler>? configure = null) =>
        new(mode, http, handler =>
        {
            handler.SslOptions.EnabledSslProtocols = version;
            configure?.Invoke(handler);
        });
}

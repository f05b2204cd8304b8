using System.Security.Authentication;
using KernelTls.Tests;

namespace KernelTls.AspNetCore.Tests;

/// <summary>
/// Tests nginx in front of the server: it verifies the certificate, keeps connections alive, and resumes sessions.
/// </summary>
[Trait("loop", "outer")]
public class ReverseProxyTests
{
    public static TheoryData<TlsMode, SslProtocols> All => Modes.CostlyWith(SslProtocols.Tls12, SslProtocols.Tls13);

    public static TheoryData<TlsMode> EveryMode => [.. Modes.Costly];

    [Theory]
    [MemberData(nameof(All))]
    public async Task Large_bodies_pass_both_ways_on_one_connection(TlsMode mode, SslProtocols version)
    {
        const int Size = 10_000_001;
        await using InteropServer server = await InteropServer.StartAsync(mode);
        server.AddFile("file", Size);
        using Nginx nginx = await StartAsync(server, version);
        using HttpClient client = CreateClient(nginx);

        Assert.Equal(Offloads.Expected(mode, version), await client.GetStringAsync(new Uri("/offload", UriKind.Relative)).InTime());
        foreach (string path in new[] { $"/bytes/{Size}", "/file" })
        {
            using HttpResponseMessage response = await client.GetAsync(
                new Uri(path, UriKind.Relative), HttpCompletionOption.ResponseHeadersRead).InTime("the answer");
            Assert.Equal("nginx", response.Headers.Server.Single().Product?.Name);
            using Stream body = await response.Content.ReadAsStreamAsync();
            await Pattern.ReceiveAsync(body, Size).InTime(path);
            Assert.Equal(0, await body.ReadAsync(new byte[1]).InTime("the end"));
        }

        using ByteArrayContent content = new(Pattern.Take(Size));
        using HttpResponseMessage posted = await client.PostAsync(new Uri("/check", UriKind.Relative), content).InTime("the upload");
        Assert.Equal($"{Size} HTTP/1.1", await posted.Content.ReadAsStringAsync().InTime());

        Assert.Single(server.Server.Events.Entries, e => e.Id.Name == "ConnectionStart");
        server.AssertConnections(1, version);
    }

    [Theory]
    [MemberData(nameof(EveryMode))]
    public async Task Many_requests_get_their_own_answers(TlsMode mode)
    {
        await using InteropServer server = await InteropServer.StartAsync(mode);
        using Nginx nginx = await StartAsync(server, SslProtocols.Tls13);
        using HttpClient client = CreateClient(nginx);

        await Parallel.ForAsync(0, Load.Requests, new ParallelOptions { MaxDegreeOfParallelism = Load.Connections }, async (i, ending) =>
        {
            int size = i * 7 % 65_536;
            byte[] body = await client.GetByteArrayAsync(new Uri($"/bytes/{size}", UriKind.Relative), ending).InTime($"answer {i}");
            Assert.Equal(size, body.Length);
            Pattern.AssertAt(0, body);
        });

        // nginx keeps twenty connections and has at most as many requests at a time. Each connection serves a thousand.
        int connections = server.Server.Events.Entries.Count(e => e.Id.Name == "ConnectionStart");
        Assert.InRange(connections, 1, 20 + (Load.Requests / 500));
        server.AssertConnections(connections, SslProtocols.Tls13);
    }

    private static HttpClient CreateClient(Nginx nginx)
    {
        HttpClient client = Server.CreateClient();
        client.BaseAddress = new Uri($"http://127.0.0.1:{nginx.Port}");
        return client;
    }

    private static Task<Nginx> StartAsync(InteropServer server, SslProtocols version) =>
        Nginx.StartProxyAsync(server.Port, version, "proxy_set_header Connection \"\";", keepAlive: 20);
}

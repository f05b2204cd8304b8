using System.Net;
using KernelTls.LibraryTests.Servers;
using KernelTls.Tests;

namespace KernelTls.LibraryTests;

/// <summary>Tests HTTP clients on a woven handler, directly and through a proxy.</summary>
public abstract class HttpTest(params string[] libraries) : LibraryTest(libraries)
{
    private const int LargeSize = 5_000_001;

    /// <summary>Gets the server that answers the requests.</summary>
    internal WebServer Origin { get; } = new(endpoints: WebServer.MapTestEndpoints);

    /// <summary>Sends requests with many small responses, a large response, and a large request body.</summary>
    internal static async Task ExchangeAsync(HttpClient client, Uri server, string version)
    {
        for (int i = 0; i < 100; i++)
        {
            Assert.Equal($"{i} {i}", await client.GetStringAsync(new Uri(server, $"/number/{i}")).InTime($"answer {i}"));
        }

        using (HttpResponseMessage response = await client.GetAsync(
            new Uri(server, $"/bytes/{LargeSize}"), HttpCompletionOption.ResponseHeadersRead).InTime("the large answer"))
        {
            Assert.Equal(Version.Parse(version), response.Version);
            using Stream body = await response.Content.ReadAsStreamAsync();
            await Pattern.ReceiveAsync(body, LargeSize).InTime("the large body");
            Assert.Equal(0, await body.ReadAsync(new byte[1]).InTime("the end"));
        }

        using ByteArrayContent content = new(Pattern.Take(LargeSize));
        using HttpResponseMessage posted = await client.PostAsync(new Uri(server, $"/check/{LargeSize}"), content).InTime("the large request");
        Assert.StartsWith($"{LargeSize} HTTP/", await posted.Content.ReadAsStringAsync().InTime(), StringComparison.Ordinal);
    }

    /// <summary>Cancels a request in the middle of its response. The next request is answered.</summary>
    internal static async Task CancelAsync(HttpClient client, Uri server)
    {
        using CancellationTokenSource cancellation = new();
        using (HttpResponseMessage response = await client.GetAsync(
            new Uri(server, "/endless"), HttpCompletionOption.ResponseHeadersRead, cancellation.Token).InTime("the endless answer"))
        {
            using Stream body = await response.Content.ReadAsStreamAsync(cancellation.Token);
            await body.ReadExactlyAsync(new byte[100_000], cancellation.Token).InTime("some of it");
            await cancellation.CancelAsync();
            await Assert.ThrowsAnyAsync<OperationCanceledException>(async () =>
            {
                while (await body.ReadAsync(new byte[4096], cancellation.Token) > 0)
                {
                }
            }).InTime("the cancelled read");
        }

        Assert.Equal("7 7", await client.GetStringAsync(new Uri(server, "/number/7")).InTime("the next answer"));
    }

    internal static HttpClient Configured(HttpClient client, string version)
    {
        client.DefaultRequestVersion = Version.Parse(version);
        client.DefaultVersionPolicy = HttpVersionPolicy.RequestVersionExact;
        client.Timeout = Limits.Wait;
        return client;
    }

    /// <summary>Sends a request that may fail because the server was restarted, and one more, which must be answered.</summary>
    internal static async Task AssertAnswersAgainAsync(HttpClient client, Uri server)
    {
        HttpStatusCode status = 0;
        for (int attempt = 0; attempt < 5 && status != HttpStatusCode.OK; attempt++)
        {
            try
            {
                using HttpResponseMessage response = await client.GetAsync(new Uri(server, "/number/8")).InTime("an answer");
                status = response.StatusCode;
            }
            catch (HttpRequestException)
            {
            }
        }

        Assert.Equal(HttpStatusCode.OK, status);
    }

    protected override Task StartAsync() => Origin.StartAsync();

    protected override async Task StopAsync() => await Origin.DisposeAsync();
}

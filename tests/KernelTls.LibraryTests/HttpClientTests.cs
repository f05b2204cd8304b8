using System.Net.Security;
using KernelTls.Tests;

namespace KernelTls.LibraryTests;

/// <summary>Tests clients that an application creates. This test assembly is woven.</summary>
[Trait("host", "yes")]
public sealed class HttpClientTests() : HttpTest("KernelTls.LibraryTests", "")
{
    public enum Kind
    {
        HttpClient,
        HttpClientHandler,
        SocketsHttpHandler,
    }

    [Theory]
    [InlineData(Kind.HttpClient, "1.1")]
    [InlineData(Kind.HttpClient, "2.0")]
    [InlineData(Kind.HttpClientHandler, "1.1")]
    [InlineData(Kind.SocketsHttpHandler, "2.0")]
    public async Task Many_small_and_a_large_message_on_one_connection(Kind kind, string version)
    {
        using HttpClient client = Client(kind, version);

        await ExchangeAsync(client, Origin.Address, version);

        Assert.Equal(1, Origin.Connections);
        Assert.Equal(2, Handshakes);
    }

    [Fact]
    public async Task Requests_that_block()
    {
        using HttpClient client = Client(Kind.SocketsHttpHandler, "1.1");

        await Limits.Blocking(() =>
        {
            for (int i = 0; i < 50; i++)
            {
                using HttpRequestMessage request = new(HttpMethod.Get, new Uri(Origin.Address, $"/number/{i}")) { Version = new Version(1, 1) };
                using HttpResponseMessage response = client.Send(request);
                using StreamReader reader = new(response.Content.ReadAsStream());
                Assert.Equal($"{i} {i}", reader.ReadToEnd());
            }
        }).InTime("the requests");

        Assert.Equal(1, Origin.Connections);
    }

    [Theory]
    [InlineData("1.1")]
    [InlineData("2.0")]
    public async Task A_cancelled_request_leaves_a_client_that_works(string version)
    {
        using HttpClient client = Client(Kind.HttpClient, version);

        await CancelAsync(client, Origin.Address);
    }

    [Theory]
    [InlineData("1.1")]
    [InlineData("2.0")]
    public async Task A_client_connects_again_when_the_server_has_restarted(string version)
    {
        using HttpClient client = Client(Kind.HttpClient, version);
        await AssertAnswersAgainAsync(client, Origin.Address);

        await Origin.StopAsync();
        await Origin.StartAsync();
        await AssertAnswersAgainAsync(client, Origin.Address);

        Assert.Equal(2, Origin.Connections);
    }

    [Theory]
    [InlineData(Kind.HttpClientHandler)]
    [InlineData(Kind.SocketsHttpHandler)]
    public async Task A_client_certificate_is_sent(Kind kind)
    {
        using HttpClient client = Client(kind, "1.1");

        Assert.Equal("CN=a client", await client.GetStringAsync(new Uri(Origin.Address, "/certificate")).InTime());
    }

    private static HttpClient Client(Kind kind, string version) => Configured(
        kind switch
        {
            Kind.HttpClient => new HttpClient(),
            Kind.HttpClientHandler => new HttpClient(new HttpClientHandler { ClientCertificates = { Certificates.Client } }),
            _ => new HttpClient(new SocketsHttpHandler
            {
                SslOptions = new SslClientAuthenticationOptions { ClientCertificates = [Certificates.Client] },
            }),
        },
        version);
}

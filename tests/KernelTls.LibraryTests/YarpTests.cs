using KernelTls.LibraryTests.Servers;
using KernelTls.Tests;
using Microsoft.AspNetCore.Builder;
using Microsoft.Extensions.DependencyInjection;
using Yarp.ReverseProxy.Configuration;

namespace KernelTls.LibraryTests;

/// <summary>Tests YARP between a client and a server, with TLS on both sides: four ends, all in this process.</summary>
[Trait("host", "yes")]
public sealed class YarpTests() : HttpTest("KernelTls.LibraryTests", "Yarp.ReverseProxy", "")
{
    private WebServer _proxy = null!;

    [Theory]
    [InlineData("1.1")]
    [InlineData("2.0")]
    public async Task Many_small_and_a_large_message_pass_both_ways(string version)
    {
        using HttpClient client = Configured(new HttpClient(), version);

        await ExchangeAsync(client, _proxy.Address, version);

        Assert.Equal(1, _proxy.Connections);

        // Over HTTP/2, the proxy opens a second connection now and then, on SslStream as well (EnableMultipleHttp2Connections).
        Assert.InRange(Origin.Connections, 1, version == "2.0" ? 2 : 1);
        Assert.Equal(2 * (_proxy.Connections + Origin.Connections), Handshakes);
    }

    [Theory]
    [InlineData("1.1")]
    [InlineData("2.0")]
    public async Task A_cancelled_request_leaves_a_proxy_that_works(string version)
    {
        using HttpClient client = Configured(new HttpClient(), version);

        await CancelAsync(client, _proxy.Address);
    }

    [Fact]
    public async Task The_proxy_connects_again_when_the_server_has_restarted()
    {
        using HttpClient client = Configured(new HttpClient(), "1.1");
        await AssertAnswersAgainAsync(client, _proxy.Address);

        await Origin.StopAsync();
        await Origin.StartAsync();
        await AssertAnswersAgainAsync(client, _proxy.Address);

        Assert.Equal(1, _proxy.Connections);
        Assert.Equal(2, Origin.Connections);
    }

    protected override async Task StartAsync()
    {
        await base.StartAsync();
        _proxy = await WebServer.StartedAsync(
            services => services.AddReverseProxy().LoadFromMemory(
                [new RouteConfig { RouteId = "all", ClusterId = "origin", Match = new RouteMatch { Path = "{**path}" } }],
                [
                    new ClusterConfig
                    {
                        ClusterId = "origin",
                        Destinations = new Dictionary<string, DestinationConfig> { ["one"] = new() { Address = $"{Origin.Address}" } },
                    },
                ]),
            application => application.MapReverseProxy());
    }

    protected override async Task StopAsync()
    {
        await _proxy.DisposeAsync();
        await base.StopAsync();
    }
}

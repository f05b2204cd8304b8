using System.Net;
using System.Net.Sockets;

namespace KernelTls.Bench.Tests;

public class BenchCommandTests
{
    /// <summary>The library of the command line ends without a message if an action is canceled.</summary>
    [Fact]
    public async Task A_request_that_times_out_is_reported()
    {
        using Socket silent = new(AddressFamily.InterNetwork, SocketType.Stream, ProtocolType.Tcp);
        silent.Bind(new IPEndPoint(IPAddress.Loopback, 0));
        silent.Listen();
        using HttpClient client = new() { Timeout = TimeSpan.FromMilliseconds(100) };
        StringWriter errors = new();

        int code = await BenchCommand.GuardAsync(
            async () =>
            {
                await client.GetAsync(new Uri($"http://{silent.LocalEndPoint}"), TestContext.Current.CancellationToken);
                return BenchCommand.Ok;
            },
            errors);

        Assert.Equal(BenchCommand.Failed, code);
        Assert.Contains("Timeout of 0.1 seconds", errors.ToString(), StringComparison.Ordinal);
    }
}

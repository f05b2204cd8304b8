using System.Net.Sockets;
using System.Text;
using KernelTls.LoadTest.Rehearsal;
using KernelTls.LoadTest.Streams;
using KernelTls.Tests;

namespace KernelTls.LoadTest.Tests;

/// <summary>Tests that a run fails if connections fail at the stream server, whose end crank ignores.</summary>
public class StreamFailureTests
{
    [Fact]
    public async Task A_connection_that_fails_at_the_server_fails_the_run()
    {
        using LoadTestProcess server = Scene.Start(Scene.ServerOf("rps", "standard"));
        int port = await server.ListenAsync(Scene.Limit);
        using (Socket foreign = new(SocketType.Stream, ProtocolType.Tcp))
        {
            await foreign.ConnectAsync("127.0.0.1", port).InTime("connecting");
            await foreign.SendAsync("GET / HTTP/1.1\r\n\r\n"u8.ToArray()).InTime("sending");
            Exception? ended = await Record.ExceptionAsync(() => foreign.ReceiveAsync(new byte[100]).InTime("the server's refusal"));
            Assert.True(ended is null or SocketException, $"{ended}");
        }

        using LoadTestProcess client = Scene.Start(Scene.ClientOf("rps", "standard", port));

        Assert.Equal(1, await client.ExitAsync(Scene.Limit));
        Assert.Contains("connections that failed at the server: 1, the first: ", client.Said, StringComparison.Ordinal);
        Assert.DoesNotContain("#StartJobStatistics", client.Said, StringComparison.Ordinal);
    }

    [Fact]
    public void Failures_are_those_of_a_run()
    {
        FailedConnections failures = new();
        failures.Add(0, "one");
        failures.Add(0, "two");
        Assert.Equal(2, failures.CountIn(0));
        Assert.Equal("connections that failed at the server: 2, the first: one", Encoding.UTF8.GetString(failures.Tell(0)));

        Assert.Empty(failures.Tell(1));
        failures.Add(1, "three");
        Assert.Equal("connections that failed at the server: 1, the first: three", Encoding.UTF8.GetString(failures.Tell(1)));
    }
}

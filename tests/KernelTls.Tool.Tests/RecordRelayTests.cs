using System.Net.Sockets;
using KernelTls.Tests;
using KernelTls.Tool.Peers;

namespace KernelTls.Tool.Tests;

public class RecordRelayTests
{
    /// <summary>
    /// The direction that fails closes the peer's socket. The other one waits for its reader, and detects that later.
    /// </summary>
    [Fact]
    public async Task A_peer_that_resets_while_its_data_waits_is_the_end_and_no_failure()
    {
        using SocketPair sockets = await SocketPair.ConnectAsync();
        Socket far = sockets.Client;
        RecordRelay relay = await RecordRelay.StartAsync(far, CancellationToken.None).InTime("the relay");
        using Socket client = relay.Client;
        await SendUntilItWaitsAsync(sockets.Server);
        sockets.Server.Close(0);
        await client.SendAsync(new byte[1]).InTime("a byte for the peer");
        using PeriodicTimer timer = new(TimeSpan.FromMilliseconds(20));
        for (long deadline = Environment.TickCount64 + (long)Limits.Wait.TotalMilliseconds; !far.SafeHandle.IsClosed;)
        {
            Assert.True(Environment.TickCount64 < deadline, "Waited for the relay to close what the peer has reset.");
            await timer.WaitForNextTickAsync();
        }

        byte[] buffer = new byte[1 << 20];
        Exception? end = await Record.ExceptionAsync(async () =>
        {
            while (await client.ReceiveAsync(buffer).InTime("what the peer had sent") > 0)
            {
            }
        });
        Assert.True(end is null or SocketException, $"{end}");
        await relay.DisposeAsync().InTime("the relay to end");
    }

    /// <summary>Sends as much as the relay and the sockets on both sides accept without a reader.</summary>
    private static async Task SendUntilItWaitsAsync(Socket peer)
    {
        using CancellationTokenSource end = new(Limits.Wait);
        byte[] part = new byte[1 << 20];
        while (true)
        {
            Task<int> sending = peer.SendAsync(part, end.Token).AsTask();
            if (await Task.WhenAny(sending, Task.Delay(Limits.Absence, CancellationToken.None)) != sending)
            {
                return;
            }

            await sending;
        }
    }
}

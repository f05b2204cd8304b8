using System.Net.Security;
using System.Net.Sockets;
using System.Security.Authentication;
using KernelTls.Tests;

namespace KernelTls.ConformanceTests;

/// <summary>Runs alone, because it measures the memory of the process.</summary>
[CollectionDefinition(nameof(SilentConnectionTests), DisableParallelization = true)]
public class WithoutOtherAllocations;

/// <summary>
/// Tests that a client that has not sent a ClientHello costs a server no more memory than on SslStream. Otherwise an attacker would
/// gain by sending less.
/// </summary>
[Collection(nameof(SilentConnectionTests))]
public class SilentConnectionTests
{
    private const int Connections = 200;

    private static readonly byte[] s_hello = [22, 3, 1, 2, 0, 1, 0, 1, 0xFC, 3, 3, .. new byte[506]];

    private static readonly int[] s_sizes = [0, 1, 5, 400];
    private static readonly bool[] s_booleans = [false, true];

    /// <summary>Gets the modes, the bytes that the client sends, and whether a callback chooses the options.</summary>
    public static TheoryData<TlsMode, int, bool> Cases =>
        [.. from mode in Modes.OnOpenSsl
            from sent in s_sizes
            from callback in s_booleans
            select new TheoryDataRow<TlsMode, int, bool>(mode, sent, callback)];

    [Theory]
    [MemberData(nameof(Cases))]
    public async Task A_client_without_a_ClientHello_costs_no_more_than_on_SslStream(TlsMode mode, int sent, bool callback)
    {
        await MeasureAsync(mode, sent, callback);
        await MeasureAsync(TlsMode.Stock, sent, callback);

        await Heap.AssertNoMoreThanStockAsync(mode, each => MeasureAsync(each, sent, callback));
    }

    /// <summary>Returns the memory of a connection whose server waits for the ClientHello.</summary>
    private static async Task<double> MeasureAsync(TlsMode mode, int sent, bool callback)
    {
        List<SocketPair> sockets = [];
        List<SslStream> servers = [];
        List<Task> handshakes = [];
        try
        {
            for (int i = 0; i < Connections; i++)
            {
                SocketPair pair = await SocketPair.ConnectAsync();
                sockets.Add(pair);
                await pair.Client.SendAsync(s_hello.AsMemory(0, sent));
            }

            long before = Heap.Measure();
            foreach (SocketPair pair in sockets)
            {
                SslStream server = Modes.Create(mode, new NetworkStream(pair.Server, ownsSocket: true));
                servers.Add(server);

                // What has arrived is looked at before the call returns.
                handshakes.Add(callback
                    ? server.HandshakeAsServerAsync((_, _, _, _) => ValueTask.FromResult(Handshakes.ServerOptions(SslProtocols.None)), state: null)
                    : server.HandshakeAsServerAsync(Handshakes.ServerOptions(SslProtocols.None)));
            }

            long after = Heap.Measure();
            Assert.All(handshakes, h => Assert.False(h.IsCompleted, $"{h.Exception}"));
            return (after - before) / (double)Connections;
        }
        finally
        {
            sockets.ForEach(s => s.Client.Dispose());
            foreach (Task handshake in handshakes)
            {
                Assert.NotNull(await Record.ExceptionAsync(() => handshake.InTime("a handshake whose client has gone")));
            }

            foreach (SslStream server in servers)
            {
                await server.DisposeAsync();
            }
        }
    }
}

using System.Net.Security;
using System.Net.Sockets;
using System.Security.Authentication;
using KernelTls.Tests;

namespace KernelTls.ConformanceTests;

/// <summary>
/// Tests that a client that has not sent a ClientHello costs a server no more memory than on SslStream. Otherwise an attacker would
/// gain by sending less.
/// </summary>
public class SilentConnectionTests
{
    private const int Connections = 200;

    private static readonly byte[] s_hello = [22, 3, 1, 2, 0, 1, 0, 1, 0xFC, 3, 3, .. new byte[506]];

    private static readonly int[] s_sizes = [0, 1, 5, 400];
    private static readonly bool[] s_booleans = [false, true];

    /// <summary>
    /// Gets the modes, the bytes that the client sends, and whether a callback chooses the options. In a lab cell one case is enough:
    /// nothing asks the kernel for TLS before the ClientHello has arrived.
    /// </summary>
    public static TheoryData<TlsMode, int, bool> Cases =>
        [.. from mode in Modes.OnOpenSsl
            from sent in s_sizes
            from callback in s_booleans
            where !Cell.IsLab || (sent == s_sizes[^1] && callback)
            select new TheoryDataRow<TlsMode, int, bool>(mode, sent, callback)];

    [Theory]
    [MemberData(nameof(Cases))]
    public Task A_client_without_a_ClientHello_costs_no_more_than_on_SslStream(TlsMode mode, int sent, bool callback) =>
        Heap.AssertNoMoreThanStockAsync(mode, sent, callback, typeof(SilentConnectionTests), nameof(Measurement));

    [Fact(Explicit = true)]
    public Task Measurement() => Heap.ReportAsync(MeasureAsync);

    /// <summary>Returns the memory of a connection whose server waits for the ClientHello.</summary>
    private static async Task<(double Bytes, IAsyncDisposable Connections)> MeasureAsync(TlsMode mode, int sent, bool callback)
    {
        WaitingServers servers = new();
        List<SocketPair>[] sockets = [await ConnectAsync(sent), await ConnectAsync(sent)];

        // The first connections pay for compiled code.
        servers.Start(sockets[0], mode, callback);
        long before = Heap.Measure();
        servers.Start(sockets[1], mode, callback);
        long after = Heap.Measure();
        return ((after - before) / (double)Connections, servers);
    }

    private static async Task<List<SocketPair>> ConnectAsync(int sent)
    {
        List<SocketPair> sockets = [];
        for (int i = 0; i < Connections; i++)
        {
            SocketPair pair = await SocketPair.ConnectAsync();
            sockets.Add(pair);
            await pair.Client.SendAsync(s_hello.AsMemory(0, sent));
        }

        return sockets;
    }

    /// <summary>Holds servers that wait for the ClientHello.</summary>
    private sealed class WaitingServers : IAsyncDisposable
    {
        private readonly List<(Socket Client, SslStream Server, Task Handshake)> _connections = [];

        public void Start(List<SocketPair> sockets, TlsMode mode, bool callback)
        {
            foreach (SocketPair pair in sockets)
            {
                SslStream server = Modes.Create(mode, new NetworkStream(pair.Server, ownsSocket: true));

                // What has arrived is looked at before the call returns.
                Task handshake = callback
                    ? server.HandshakeAsServerAsync((_, _, _, _) => ValueTask.FromResult(Handshakes.ServerOptions(SslProtocols.None)), state: null)
                    : server.HandshakeAsServerAsync(Handshakes.ServerOptions(SslProtocols.None));
                Assert.False(handshake.IsCompleted, $"{handshake.Exception}");
                _connections.Add((pair.Client, server, handshake));
            }
        }

        public async ValueTask DisposeAsync()
        {
            foreach ((Socket client, SslStream server, Task handshake) in _connections)
            {
                client.Dispose();
                Assert.NotNull(await Record.ExceptionAsync(() => handshake.InTime("a handshake whose client has gone")));
                await server.DisposeAsync();
            }
        }
    }
}

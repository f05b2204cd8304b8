using System.Net;
using System.Net.Security;
using System.Net.Sockets;
using KernelTls.Tests;
using Microsoft.AspNetCore.Connections;
using Microsoft.AspNetCore.Hosting;
using Microsoft.AspNetCore.Server.Kestrel.Core;
using Microsoft.AspNetCore.Server.Kestrel.Https;

namespace KernelTls.AspNetCore.Tests;

/// <summary>
/// Tests that a client that has not sent a ClientHello costs an endpoint no more memory than with the stock transport and SslStream.
/// </summary>
public class SilentConnectionTests
{
    private const int Connections = 200;

    private static readonly byte[] s_hello = [22, 3, 1, 2, 0, 1, 0, 1, 0xFC, 3, 3, .. new byte[506]];

    private static readonly int[] s_sizes = [0, 1, 400];
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
    public Task A_client_without_a_ClientHello_costs_no_more_than_on_the_stock_stack(TlsMode mode, int sent, bool callback) =>
        Heap.AssertNoMoreThanStockAsync(mode, sent, callback, typeof(SilentConnectionTests), nameof(Measurement));

    [Fact(Explicit = true)]
    public Task Measurement() => Heap.ReportAsync(MeasureAsync);

    private static async Task<(double Bytes, IAsyncDisposable Connections)> MeasureAsync(TlsMode mode, int sent, bool callback)
    {
        SemaphoreSlim waiting = new(0);
        Clients clients = new(await Server.StartAsync(
            mode,
            kestrel => kestrel.Listen(IPAddress.Loopback, 0, endpoint =>
            {
                endpoint.Use(next => connection => ServeAsync(next, connection, waiting));
                if (callback)
                {
                    endpoint.UseHttps(new TlsHandshakeCallbackOptions
                    {
                        HandshakeTimeout = Limits.Wait,
                        OnConnection = _ => ValueTask.FromResult(
                            new SslServerAuthenticationOptions { ServerCertificateContext = Certificates.EcdsaContext }),
                    });
                }
                else
                {
                    endpoint.UseHttps(Certificates.Ecdsa, https => https.HandshakeTimeout = Limits.Wait);
                }
            }),
            configure: null));

        // The first connections pay for compiled code.
        await clients.ConnectAsync(sent, waiting);
        long before = Heap.Measure();
        await clients.ConnectAsync(sent, waiting);
        return ((Heap.Measure() - before) / (double)Connections, clients);
    }

    /// <summary>Signals when the handshake waits: it has looked at what has arrived, and has returned.</summary>
    private static Task ServeAsync(ConnectionDelegate next, ConnectionContext connection, SemaphoreSlim waiting)
    {
        Task serving = next(connection);
        waiting.Release();
        return serving;
    }

    /// <summary>A server and its clients that say nothing more.</summary>
    private sealed class Clients(Server server) : IAsyncDisposable
    {
        private readonly List<Socket> _sockets = [];

        public async Task ConnectAsync(int sent, SemaphoreSlim waiting)
        {
            for (int i = 0; i < Connections; i++)
            {
                Socket client = await server.ConnectSocketAsync();
                _sockets.Add(client);
                await client.SendAsync(s_hello.AsMemory(0, sent));
                Assert.True(await waiting.WaitAsync(Limits.Wait), "the server did not take a connection");
            }
        }

        public ValueTask DisposeAsync()
        {
            _sockets.ForEach(s => s.Dispose());
            return server.DisposeAsync();
        }
    }
}

using System.Net;
using System.Net.Security;
using System.Net.Sockets;
using KernelTls.Tests;
using Microsoft.AspNetCore.Connections;
using Microsoft.AspNetCore.Hosting;
using Microsoft.AspNetCore.Server.Kestrel.Core;
using Microsoft.AspNetCore.Server.Kestrel.Https;

namespace KernelTls.AspNetCore.Tests;

/// <summary>Runs alone, because it measures the memory of the process.</summary>
[CollectionDefinition(nameof(SilentConnectionTests), DisableParallelization = true)]
public class WithoutOtherAllocations;

/// <summary>
/// Tests that a client that has not sent a ClientHello costs an endpoint no more memory than with the stock transport and SslStream.
/// </summary>
[Collection(nameof(SilentConnectionTests))]
public class SilentConnectionTests
{
    private const int Connections = 200;

    private static readonly byte[] s_hello = [22, 3, 1, 2, 0, 1, 0, 1, 0xFC, 3, 3, .. new byte[506]];

    private static readonly int[] s_sizes = [0, 1, 400];
    private static readonly bool[] s_booleans = [false, true];

    /// <summary>Gets the modes, the bytes that the client sends, and whether a callback chooses the options.</summary>
    public static TheoryData<TlsMode, int, bool> Cases =>
        [.. from mode in Modes.OnOpenSsl
            from sent in s_sizes
            from callback in s_booleans
            select new TheoryDataRow<TlsMode, int, bool>(mode, sent, callback)];

    [Theory]
    [MemberData(nameof(Cases))]
    public async Task A_client_without_a_ClientHello_costs_no_more_than_on_the_stock_stack(TlsMode mode, int sent, bool callback)
    {
        await Heap.AssertNoMoreThanStockAsync(mode, each => MeasureAsync(each, sent, callback));
    }

    private static async Task<double> MeasureAsync(TlsMode mode, int sent, bool callback)
    {
        using SemaphoreSlim waiting = new(0);
        await using Server server = await Server.StartAsync(
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
            configure: null);

        List<Socket> clients = [];
        try
        {
            // The first connections pay for compiled code. They stay, because the next ones would use their buffers.
            await ConnectAsync(server, sent, waiting, clients);
            long before = Heap.Measure();
            await ConnectAsync(server, sent, waiting, clients);
            return (Heap.Measure() - before) / (double)Connections;
        }
        finally
        {
            clients.ForEach(c => c.Dispose());
        }
    }

    /// <summary>Signals when the handshake waits: it has looked at what has arrived, and has returned.</summary>
    private static Task ServeAsync(ConnectionDelegate next, ConnectionContext connection, SemaphoreSlim waiting)
    {
        Task serving = next(connection);
        waiting.Release();
        return serving;
    }

    private static async Task ConnectAsync(Server server, int sent, SemaphoreSlim waiting, List<Socket> clients)
    {
        for (int i = 0; i < Connections; i++)
        {
            Socket client = await server.ConnectSocketAsync();
            clients.Add(client);
            await client.SendAsync(s_hello.AsMemory(0, sent));
            Assert.True(await waiting.WaitAsync(Limits.Wait), "the server did not take a connection");
        }
    }
}

using System.Net.Security;
using System.Net.Sockets;
using System.Security.Authentication;
using KernelTls.Tests;
using Microsoft.AspNetCore.Builder;
using Microsoft.AspNetCore.Connections;
using Microsoft.AspNetCore.Connections.Features;
using Microsoft.AspNetCore.Server.Kestrel.Core.Features;

namespace KernelTls.AspNetCore.Tests;

/// <summary>
/// Compares the values of Kestrel's TLS features after the connection has ended with those of the stock server of the
/// same runtime.
/// </summary>
public class FeatureAfterEndTests
{
    public static TheoryData<TlsMode, SslProtocols, bool> All => Modes.AllWith(true, false);

    [Theory]
    [MemberData(nameof(All))]
    public async Task The_features_of_a_connection_that_is_over_answer_as_on_the_stock_server(TlsMode mode, SslProtocols version, bool isTls) =>
        await SideBySide.RunAsync(mode, async each =>
        {
            TaskCompletionSource<string> seen = new(TaskCreationOptions.RunContinuationsAsynchronously);
            await using Server server = await Server.StartAsync(each, listen: endpoint => endpoint.Use(next => async connection =>
            {
                try
                {
                    await next(connection);
                }
                finally
                {
                    seen.TrySetResult(Describe(connection));
                }
            }));
            if (isTls)
            {
                await (await server.ConnectAsync(version, client => client.ApplicationProtocols = [SslApplicationProtocol.Http11])).DisposeAsync();
                return await seen.Task.InTime("the end of the connection");
            }

            using Socket socket = await server.ConnectSocketAsync();
            await socket.SendAsync("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"u8.ToArray()).InTime("a request without TLS");
            return await seen.Task.InTime("the end of the connection");
        });

    private static string Describe(ConnectionContext connection)
    {
        if (connection.Features.Get<ITlsHandshakeFeature>() is not { } handshake)
        {
            return "no features";
        }

        ITlsApplicationProtocolFeature alpn = connection.Features.Get<ITlsApplicationProtocolFeature>()!;

        // The property exists in .NET 11.
        object? failure = typeof(ITlsHandshakeFeature).GetProperty("Exception")?.GetValue(handshake);
        return $"protocol: {Answer(() => handshake.Protocol)}, suite: {Answer(() => handshake.NegotiatedCipherSuite)}, "
            + $"ALPN: {Answer(() => alpn.ApplicationProtocol.Length)}, failure: {failure?.GetType().Name}";
    }

    private static string Answer(Func<object?> ask)
    {
        try
        {
            return $"{ask()}";
        }
        catch (Exception e)
        {
            return e.GetType().Name;
        }
    }
}

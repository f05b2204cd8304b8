using System.Net.Security;
using System.Security.Authentication;
using KernelTls.Tests;
using Microsoft.AspNetCore.Builder;
using Microsoft.AspNetCore.Connections;
using Microsoft.AspNetCore.Connections.Features;
using Microsoft.AspNetCore.Server.Kestrel.Core.Features;

namespace KernelTls.AspNetCore.Tests;

/// <summary>What Kestrel's TLS features answer once a connection is over, compared with the stock server of the same runtime.</summary>
public class FeatureAfterEndTests
{
    public static TheoryData<TlsMode, SslProtocols, bool> All => Modes.AllWith(true, false);

    [Theory]
    [MemberData(nameof(All))]
    public async Task The_features_of_a_connection_that_is_over_answer_as_on_the_stock_server(TlsMode mode, SslProtocols version, bool isTrusted) =>
        await SideBySide.RunAsync(mode, async each =>
        {
            TaskCompletionSource<string> seen = new(TaskCreationOptions.RunContinuationsAsynchronously);
            await using Server server = await Server.StartAsync(each, listen: endpoint => endpoint.Use(next => async connection =>
            {
                await next(connection);
                seen.TrySetResult(Describe(connection));
            }));
            Task<SslStream> connecting = server.ConnectAsync(version, client =>
            {
                client.ApplicationProtocols = [SslApplicationProtocol.Http11];
                client.CertificateChainPolicy = null;
                client.RemoteCertificateValidationCallback = (_, _, _, _) => isTrusted;
            });
            if (isTrusted)
            {
                await (await connecting).DisposeAsync();
            }
            else
            {
                await Assert.ThrowsAsync<AuthenticationException>(() => connecting);
            }

            return await seen.Task.InTime("the end of the connection");
        });

    private static string Describe(ConnectionContext connection)
    {
        ITlsHandshakeFeature handshake = connection.Features.Get<ITlsHandshakeFeature>()!;
        ITlsApplicationProtocolFeature alpn = connection.Features.Get<ITlsApplicationProtocolFeature>()!;

        // .NET 11 has it.
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

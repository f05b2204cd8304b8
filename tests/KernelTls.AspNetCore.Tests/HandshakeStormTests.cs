using System.Net.Security;
using System.Net.Sockets;
using System.Security.Authentication;
using KernelTls.Tests;

namespace KernelTls.AspNetCore.Tests;

/// <summary>Tests clients that connect all at once, beside an established connection.</summary>
public class HandshakeStormTests(ITestOutputHelper output)
{
    /// <summary>
    /// A thousand clients in the process of the server take more memory than User-Mode Linux has mappings for.
    /// </summary>
    private static readonly int s_clients = Cell.IsLab ? 200 : 1000;

    public static TheoryData<TlsMode> OnOpenSsl => [.. Modes.OnOpenSsl];

    [Theory]
    [MemberData(nameof(OnOpenSsl))]
    public async Task An_established_connection_is_served_and_every_client_gets_its_response(TlsMode mode)
    {
        await using InteropServer server = await InteropServer.StartAsync(mode);
        await using SslStream established = await server.Server.ConnectAsync();
        await Raw.ExchangeAsync(established);

        using CancellationTokenSource end = new();
        Task<int> asking = AskUntilAsync(established, end.Token);
        try
        {
            await Task.WhenAll(Enumerable.Range(0, s_clients).Select(_ => ConnectAsync(server.Server)))
                .InTime($"{s_clients} clients to connect and get a response");
        }
        finally
        {
            await end.CancelAsync();
        }

        int responses = await asking.InTime("the last response of the established connection");
        output.WriteLine($"responses during the storm: {responses}");
        Assert.InRange(responses, 1, int.MaxValue);
        server.AssertConnections(s_clients + 1, SslProtocols.Tls13);
    }

    private static async Task ConnectAsync(Server server)
    {
        using Socket socket = await server.ConnectSocketAsync();
        await using SslStream client = new(new NetworkStream(socket));
        await client.AuthenticateAsClientAsync(Handshakes.ClientOptions(SslProtocols.Tls13));
        await Raw.ExchangeAsync(client);
    }

    private static async Task<int> AskUntilAsync(SslStream client, CancellationToken end)
    {
        int responses = 0;
        for (; !end.IsCancellationRequested; responses++)
        {
            await Raw.ExchangeAsync(client);
        }

        return responses;
    }
}

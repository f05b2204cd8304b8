using System.Net.Security;
using System.Net.Sockets;
using System.Security.Authentication;
using KernelTls.Tests;

namespace KernelTls.AspNetCore.Tests;

/// <summary>
/// Tests a thousand clients that connect at the same time, beside an established connection: the server does no worse
/// than the stock one.
/// </summary>
public class HandshakeStormTests(ITestOutputHelper output)
{
    private const int Clients = 1000;

    public static TheoryData<TlsMode> OnOpenSsl => [.. Modes.OnOpenSsl];

    [Theory]
    [MemberData(nameof(OnOpenSsl))]
    public async Task An_established_connection_is_served_and_every_client_gets_its_response(TlsMode mode)
    {
        int stock = await MeetAsync(TlsMode.Stock);
        int responses = await MeetAsync(mode);
        output.WriteLine($"responses during the storm: {TlsMode.Stock} {stock}, {mode} {responses}");

        Assert.True(responses >= Math.Max(1, stock / 4), $"{responses} responses, {stock} from the stock server");
    }

    /// <summary>Returns the number of responses that the established connection got during the storm.</summary>
    private static async Task<int> MeetAsync(TlsMode mode)
    {
        await using InteropServer server = await InteropServer.StartAsync(mode);
        await using SslStream established = await server.Server.ConnectAsync();
        await Raw.AskAsync(established);

        using CancellationTokenSource end = new();
        Task<int> asking = AskUntilAsync(established, end.Token);
        try
        {
            await Task.WhenAll(Enumerable.Range(0, Clients).Select(_ => ConnectAsync(server.Server)))
                .Within(4 * Limits.Wait, $"{Clients} clients to connect and get a response");
        }
        finally
        {
            await end.CancelAsync();
        }

        int responses = await asking.InTime("the last response of the established connection");
        server.AssertConnections(Clients + 1, SslProtocols.Tls13);
        return responses;
    }

    private static async Task ConnectAsync(Server server)
    {
        using Socket socket = await server.ConnectSocketAsync();
        await using SslStream client = new(new NetworkStream(socket));
        await client.AuthenticateAsClientAsync(Handshakes.ClientOptions(SslProtocols.Tls13));
        await Raw.AskAsync(client);
    }

    private static async Task<int> AskUntilAsync(SslStream client, CancellationToken end)
    {
        int responses = 0;
        for (; !end.IsCancellationRequested; responses++)
        {
            await Raw.AskAsync(client);
        }

        return responses;
    }
}

using System.Buffers;
using System.Net;
using System.Net.Security;
using System.Net.Sockets;
using System.Security.Authentication;
using System.Text;
using KernelTls.Tests;
using Microsoft.AspNetCore.Connections;
using Microsoft.AspNetCore.Hosting;
using Microsoft.AspNetCore.Server.Kestrel.Https;
using Microsoft.AspNetCore.Server.Kestrel.Transport.Sockets;

namespace KernelTls.AspNetCore.Tests;

/// <summary>
/// Tests the ClientHello that the application's callback receives, and clients that send it in pieces.
/// </summary>
[Trait("loop", "outer-kernel")]
public class ClientHelloTests
{
    public static TheoryData<TlsMode> All => [.. Modes.Every];

    public static TheoryData<TlsMode> OnOpenSsl => [.. Modes.OnOpenSsl];

    [Theory]
    [MemberData(nameof(All))]
    public async Task The_application_sees_the_bytes_before_anything_else(TlsMode mode)
    {
        List<string> order = [];
        byte[] seen = [];
        await using Server server = await Server.StartAsync(mode, https =>
        {
            https.TlsClientHelloBytesCallback = (connection, bytes) =>
            {
                order.Add($"hello {connection.ConnectionId.Length}");
                seen = bytes.ToArray();
            };
            https.OnAuthenticate = (_, _) => order.Add("options");
        });
        using Socket socket = await server.ConnectSocketAsync();
        HelloStream hello = new(socket);

        Assert.Contains(Offloads.Expected(mode, SslProtocols.Tls13), await GetAsync(hello), StringComparison.Ordinal);

        Assert.Equal(["hello 13", "options"], order);
        Assert.Equal(hello.Sent, seen);
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task It_may_come_in_pieces(TlsMode mode)
    {
        int shown = 0;
        await using Server server = await Server.StartAsync(
            mode,
            https => https.TlsClientHelloBytesCallback = (_, bytes) => shown = (int)bytes.Length,
            kestrel: kestrel => kestrel.Listen(IPAddress.Loopback, 0, endpoint => endpoint.UseHttps(ChooseByName())));
        foreach (int port in new[] { server.Https.Port, server.LastHttps.Port })
        {
            using Socket socket = await server.ConnectSocketAsync(port);
            HelloStream hello = new(socket) { Pieces = [1, 4, 1, 100, int.MaxValue] };

            Assert.Contains(Offloads.Expected(mode, SslProtocols.Tls13), await GetAsync(hello), StringComparison.Ordinal);

            Assert.Equal(hello.Sent.Length, shown);
        }
    }

    /// <summary>RFC 8446, section 5.1: a message may be split across records. OpenSSL reassembles it.</summary>
    [Theory]
    [MemberData(nameof(OnOpenSsl))]
    public async Task It_may_come_in_more_than_one_record(TlsMode mode)
    {
        await using Server server = await StartChoosingAsync(mode);
        using Socket socket = await server.ConnectSocketAsync();

        string answer = await GetAsync(new HelloStream(socket) { SplitsRecord = true });

        Assert.Contains(Offloads.Expected(mode, SslProtocols.Tls13), answer, StringComparison.Ordinal);
    }

    /// <summary>Waiting for more than the receive buffer holds would never end.</summary>
    [Theory]
    [MemberData(nameof(OnOpenSsl))]
    public async Task It_may_be_larger_than_the_receive_buffer(TlsMode mode)
    {
        await using Server server = await StartChoosingAsync(mode, socket => socket.ReceiveBufferSize = 1);
        using Socket socket = await server.ConnectSocketAsync();

        string answer = await GetAsync(new HelloStream(socket), options => options.ApplicationProtocols =
            [.. Enumerable.Range(0, 100).Select(i => new SslApplicationProtocol($"{i}{new string('x', 100)}")), SslApplicationProtocol.Http11]);

        Assert.Contains(Offloads.Expected(mode, SslProtocols.Tls13), answer, StringComparison.Ordinal);
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task A_client_that_stops_in_its_midst_is_cut_off_in_time(TlsMode mode)
    {
        bool isShown = false;
        await using Server server = await Server.StartAsync(mode, https =>
        {
            https.HandshakeTimeout = TimeSpan.FromMilliseconds(500);
            https.TlsClientHelloBytesCallback = (_, _) => isShown = true;
        });
        using Socket socket = await server.ConnectSocketAsync();
        await socket.SendAsync(new byte[] { 22, 3, 1, 2, 0, 1, 0, 1, 252 }).InTime();

        await server.Events.WaitForAsync(e => e.Id.Name == "AuthenticationTimedOut", "the server to lose patience");
        await server.Events.WaitForAsync(e => e.Id.Name == "ConnectionStop", "the connection to stop");
        Assert.False(isShown);
    }

    /// <summary>The stock server accepts no handshake without a time limit.</summary>
    [Theory]
    [MemberData(nameof(OnOpenSsl))]
    public async Task Shutting_down_in_its_midst_does_not_wait_for_the_rest(TlsMode mode)
    {
        await using Server server = await Server.StartAsync(mode, https =>
        {
            https.HandshakeTimeout = Timeout.InfiniteTimeSpan;
            https.TlsClientHelloBytesCallback = (_, _) => { };
        });
        using Socket socket = await server.ConnectSocketAsync();
        await socket.SendAsync(new byte[] { 22, 3, 1, 2, 0, 1, 0, 1, 252 }).InTime();
        await server.Events.WaitForAsync(e => e.Id.Name == "ConnectionStart", "the connection to start");
        await Task.Delay(Limits.Absence);

        await server.StopAsync(new CancellationToken(true)).InTime("the server to stop");

        await server.Events.WaitForAsync(e => e.Id.Name == "AuthenticationFailed", "a word on the handshake");
    }

    private static TlsHandshakeCallbackOptions ChooseByName() => new()
    {
        HandshakeTimeout = Limits.Wait,
        OnConnection = context => ValueTask.FromResult(
            context.ClientHelloInfo.ServerName == "localhost"
                ? Handshakes.ServerOptions(SslProtocols.None)
                : throw new AuthenticationException($"asked for '{context.ClientHelloInfo.ServerName}'")),
    };

    private static Task<Server> StartChoosingAsync(TlsMode mode, Action<Socket>? listener = null) => Server.StartAsync(
        mode,
        options => options.Listen(IPAddress.Loopback, 0, endpoint => endpoint.UseHttps(ChooseByName())),
        builder => builder.WebHost.UseSockets(sockets => sockets.CreateBoundListenSocket = endpoint =>
        {
            Socket bound = SocketTransportOptions.CreateDefaultBoundListenSocket(endpoint);
            listener?.Invoke(bound);
            return bound;
        }));

    /// <summary>Returns the server's report about this connection.</summary>
    private static async Task<string> GetAsync(HelloStream hello, Action<SslClientAuthenticationOptions>? configure = null)
    {
        await using SslStream client = new(hello);
        SslClientAuthenticationOptions options = Handshakes.ClientOptions(SslProtocols.Tls13);
        configure?.Invoke(options);
        await client.AuthenticateAsClientAsync(options).InTime("the client's handshake");
        await client.WriteAsync("GET /offload HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"u8.ToArray()).InTime();
        using StreamReader reader = new(client, Encoding.Latin1);
        return await reader.ReadToEndAsync().InTime();
    }

    /// <summary>
    /// The stream below a client's SslStream: controls how the ClientHello is sent, and stores its bytes.
    /// </summary>
    private sealed class HelloStream(Socket socket) : NetworkStream(socket)
    {
        private const int HeaderLength = 5;

        public byte[] Sent { get; private set; } = [];

        public int[] Pieces { get; init; } = [int.MaxValue];

        public bool SplitsRecord { get; init; }

        public override async ValueTask WriteAsync(ReadOnlyMemory<byte> buffer, CancellationToken cancellationToken = default)
        {
            if (Sent.Length > 0)
            {
                await base.WriteAsync(buffer, cancellationToken);
                return;
            }

            Sent = buffer.ToArray();
            ReadOnlyMemory<byte> rest = SplitsRecord ? Split(Sent) : Sent;
            foreach (int piece in Pieces)
            {
                await base.WriteAsync(rest[..Math.Min(piece, rest.Length)], cancellationToken);
                rest = rest[Math.Min(piece, rest.Length)..];
                if (!rest.IsEmpty)
                {
                    // Separate on the wire, so that the server receives each alone.
                    await Task.Delay(Limits.Absence, cancellationToken);
                }
            }
        }

        private static byte[] Split(byte[] record)
        {
            const int First = 50;
            int second = record.Length - HeaderLength - First;
            return
            [
                .. record[..3], 0, First, .. record[HeaderLength..(HeaderLength + First)],
                .. record[..3], (byte)(second >> 8), (byte)second, .. record[(HeaderLength + First)..],
            ];
        }
    }
}

using System.Diagnostics;
using System.Net.Security;
using System.Net.Sockets;
using System.Security.Authentication;
using System.Text;
using KernelTls.Interop;
using KernelTls.Tests;

namespace KernelTls.ConformanceTests;

/// <summary>
/// Tests that the alert of an end that refuses a handshake arrives although the peer's last flight, and data sent
/// before the peer knows, is still unread. Closing a socket with unread bytes resets the connection (RFC 9112, 9.6
/// describes the same problem).
/// </summary>
public class RefusalDeliveryTests
{
    private const int Rounds = 50;

    // AlertTests compares this alert with SslStream's.
    private static readonly string s_alert =
        RuntimeBehavior.RefusesInHandshake ? "alert handshake failure" : "alert certificate unknown";

    public static TheoryData<TlsMode, SslProtocols, bool> OnOpenSsl => Modes.AllOnOpenSslWith(true, false);

    public static TheoryData<TlsMode, SslProtocols> All => Modes.AllOnOpenSsl;

    public static TheoryData<TlsMode, SslProtocols, bool> EveryMode => Modes.AllWith(true, false);

    [Theory]
    [MemberData(nameof(OnOpenSsl))]
    public async Task A_client_reads_why_its_certificate_was_refused(TlsMode mode, SslProtocols version, bool writesFirst)
    {
        for (int i = 0; i < Rounds; i++)
        {
            using SocketPair sockets = await SocketPair.ConnectAsync();
            await using SslStream client = Modes.Create(TlsMode.Stock, new NetworkStream(sockets.Client, ownsSocket: true));
            Task refusing = RefuseAsync(Modes.Create(
                mode, new NetworkStream(sockets.Server, ownsSocket: true), validation: (_, _, _, _) => false));
            SslClientAuthenticationOptions options = Handshakes.ClientOptions(version);
            options.ClientCertificateContext = Certificates.ClientContext;
            Exception? told = await Record.ExceptionAsync(async () =>
            {
                await client.HandshakeAsClientAsync(options).InTime("the client's handshake");
                if (writesFirst)
                {
                    await client.WriteAsync(new byte[20]).InTime("a write in front of the alert");
                }

                Assert.Equal(0, await client.ReadAsync(new byte[10]).InTime("the alert"));
                Assert.Fail("The connection ended without an alert.");
            });

            Assert.Contains(s_alert, $"{told}", StringComparison.Ordinal);
            await client.DisposeAsync();
            await refusing.InTime("the server to close");
        }

        async Task RefuseAsync(SslStream server)
        {
            SslServerAuthenticationOptions options = Handshakes.ServerOptions(version);
            options.ClientCertificateRequired = true;
            await Assert.ThrowsAsync<AuthenticationException>(() => server.HandshakeAsServerAsync(options));
            await server.DisposeAsync();
        }
    }

    /// <summary>Blocking and with reversed roles: the client refuses, and the server receives the alert.</summary>
    [Theory]
    [MemberData(nameof(All))]
    public async Task A_server_reads_why_its_certificate_was_refused(TlsMode mode, SslProtocols version)
    {
        for (int i = 0; i < Rounds; i++)
        {
            using SocketPair sockets = await SocketPair.ConnectAsync();
            await using SslStream server = Modes.Create(TlsMode.Stock, new NetworkStream(sockets.Server, ownsSocket: true));
            Task refusing = Limits.Blocking(() => Refuse(Modes.Create(
                mode, new NetworkStream(sockets.Client, ownsSocket: true), validation: (_, _, _, _) => false)));
            Exception? told = await Record.ExceptionAsync(() => server.HandshakeAsServerAsync(Handshakes.ServerOptions(version)).InTime());

            Assert.Contains(s_alert, $"{told}", StringComparison.Ordinal);
            await server.DisposeAsync();
            await refusing.InTime("the client to close");
        }

        void Refuse(SslStream client)
        {
            Assert.Throws<AuthenticationException>(() => client.ShakeClient(Handshakes.ClientOptions(version)));
            client.Dispose();
        }
    }

    /// <summary>A server that disposes its streams is not slowed down by peers that neither read nor close.</summary>
    [Theory]
    [MemberData(nameof(EveryMode))]
    public async Task Peers_that_stay_are_not_waited_for(TlsMode mode, SslProtocols version, bool blocking)
    {
        const int Peers = 16;
        TimeSpan disposing = TimeSpan.Zero;
        List<SocketPair> all = [];
        try
        {
            for (int i = 0; i < Peers; i++)
            {
                SocketPair sockets = await SocketPair.ConnectAsync();
                all.Add(sockets);
                SslStream server = await RefuseRequestAsync(sockets, mode, version);

                Stopwatch time = Stopwatch.StartNew();
                await (blocking ? Limits.Blocking(server.Dispose) : server.DisposeAsync().AsTask()).InTime("the server to close");
                disposing += time.Elapsed;
                Assert.Throws<ObjectDisposedException>(() => sockets.Server.Available);
            }
        }
        finally
        {
            all.ForEach(p => p.Dispose());
        }

        Assert.InRange(disposing, TimeSpan.Zero, TimeSpan.FromSeconds(Peers / 2));
    }

    /// <summary>An application that keeps the inner stream can still send, and the peer's data is left to it.</summary>
    [Theory]
    [MemberData(nameof(EveryMode))]
    public async Task A_stream_that_is_left_open_is_not_shut_down(TlsMode mode, SslProtocols version, bool blocking)
    {
        using SocketPair sockets = await SocketPair.ConnectAsync();
        SslStream server = await RefuseRequestAsync(sockets, mode, version, leaveInnerStreamOpen: true);
        await (blocking ? Limits.Blocking(server.Dispose) : server.DisposeAsync().AsTask()).InTime("the server to close");

        await sockets.Server.SendAsync("still here"u8.ToArray()).InTime("a send on the open socket");
        sockets.Server.Shutdown(SocketShutdown.Send);
        string received = "";
        byte[] buffer = new byte[100];
        while (await sockets.Client.ReceiveAsync(buffer).InTime("what the application sent") is > 0 and int count)
        {
            received += Encoding.Latin1.GetString(buffer, 0, count);
        }

        Assert.EndsWith("still here", received, StringComparison.Ordinal);
        await sockets.Client.SendAsync("for the application"u8.ToArray()).InTime("a send by the peer");
        Assert.Equal(19, await sockets.Server.ReceiveAsync(buffer.AsMemory(0, 19)).InTime("what the peer sent"));
    }

    private static async Task<SslStream> RefuseRequestAsync(
        SocketPair sockets, TlsMode mode, SslProtocols version, bool leaveInnerStreamOpen = false)
    {
        SslStream server = Modes.Create(mode, new NetworkStream(sockets.Server, ownsSocket: true), leaveInnerStreamOpen);
        await sockets.Client.SendAsync("GET / HTTP/1.1\r\n\r\n"u8.ToArray());
        await Assert.ThrowsAnyAsync<Exception>(() => server.HandshakeAsServerAsync(Handshakes.ServerOptions(version)).InTime());
        return server;
    }
}

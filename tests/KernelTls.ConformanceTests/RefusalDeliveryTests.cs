using System.Diagnostics;
using System.Net.Security;
using System.Net.Sockets;
using System.Security.Authentication;
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

    /// <summary>A peer that neither reads nor closes does not delay the disposal for long.</summary>
    [Theory]
    [MemberData(nameof(OnOpenSsl))]
    public async Task A_peer_that_stays_is_not_waited_for(TlsMode mode, SslProtocols version, bool blocking)
    {
        using SocketPair sockets = await SocketPair.ConnectAsync();
        SslStream server = Modes.Create(mode, new NetworkStream(sockets.Server, ownsSocket: true));
        await sockets.Client.SendAsync("GET / HTTP/1.1\r\n\r\n"u8.ToArray());
        await Assert.ThrowsAsync<AuthenticationException>(() => server.HandshakeAsServerAsync(Handshakes.ServerOptions(version)).InTime());

        Stopwatch time = Stopwatch.StartNew();
        await (blocking ? Limits.Blocking(server.Dispose) : server.DisposeAsync().AsTask()).InTime("the server to close");
        Assert.InRange(time.Elapsed, TimeSpan.Zero, TimeSpan.FromSeconds(Cell.IsLab ? 20 : 5));
        Assert.Throws<ObjectDisposedException>(() => sockets.Server.Available);
    }
}

using System.Net.Security;
using System.Net.Sockets;
using System.Security.Authentication;
using KernelTls.Tests;

namespace KernelTls.ConformanceTests;

/// <summary>
/// Compares handshakes with a peer that does not use TLS or stops in the middle: they fail on KtlsStream with the same
/// type of exception as on SslStream.
/// </summary>
public class HandshakePeerTests
{
    private static readonly byte[] s_tls11ClientHello = Convert.FromHexString(
        "160302002d" + "01000029" + "0302" + new string('a', 64) + "00" + "0002" + "002f" + "01" + "00");

    private static readonly byte[] s_tls11ServerHello = Convert.FromHexString(
        "160302002a" + "02000026" + "0302" + new string('b', 64) + "00" + "002f" + "00");

    public static TheoryData<TlsMode, bool> EitherEnd =>
    [
        .. Modes.OnOpenSsl.Select(m => new TheoryDataRow<TlsMode, bool>(m, false)),
        .. Modes.OnOpenSsl.Select(m => new TheoryDataRow<TlsMode, bool>(m, true)),
    ];

    public static TheoryData<TlsMode, string> RawPeers()
    {
        TheoryData<TlsMode, string> data = [];
        foreach (TlsMode mode in Modes.OnOpenSsl)
        {
            foreach (string peer in new[] { "plain text", "HTTP", "TLS 1.1", "closes", "closes inside a record", "alert", "resets", "SSH" })
            {
                data.Add(mode, peer);
            }
        }

        return data;
    }

    [Theory]
    [MemberData(nameof(RawPeers))]
    public async Task A_client_meets_a_peer_that_does_not_play_along(TlsMode mode, string peer)
    {
        Exception expected = await MeetAsync(TlsMode.Stock, isServer: false, peer);
        Exception actual = await MeetAsync(mode, isServer: false, peer);

        AssertSame(expected, actual);
    }

    [Theory]
    [MemberData(nameof(RawPeers))]
    public async Task A_server_meets_a_peer_that_does_not_play_along(TlsMode mode, string peer)
    {
        Exception expected = await MeetAsync(TlsMode.Stock, isServer: true, peer);
        Exception actual = await MeetAsync(mode, isServer: true, peer);

        AssertSame(expected, actual);
    }

    [Theory]
    [MemberData(nameof(EitherEnd))]
    public async Task A_peer_that_was_gone_before(TlsMode mode, bool isServer)
    {
        Exception expected = await MeetNobodyAsync(TlsMode.Stock, isServer);
        Exception actual = await MeetNobodyAsync(mode, isServer);

        Assert.IsType<SocketException>(Assert.IsType<IOException>(expected).InnerException);
        AssertSame(expected, actual);
    }

    internal static void AssertSame(Exception expected, Exception actual)
    {
        Assert.IsNotType<TimeoutException>(actual);
        Assert.True(expected.GetType() == actual.GetType(), $"SslStream: {expected}\nKtlsStream: {actual}");
        if (expected.InnerException is SocketException socket)
        {
            Assert.Equal(socket.SocketErrorCode, Assert.IsType<SocketException>(actual.InnerException).SocketErrorCode);
        }
    }

    private static async Task<Exception> MeetAsync(TlsMode mode, bool isServer, string peer)
    {
        using SocketPair sockets = await SocketPair.ConnectAsync();
        Socket raw = isServer ? sockets.Client : sockets.Server;
        await using SslStream stream = Modes.Create(mode, new NetworkStream(isServer ? sockets.Server : sockets.Client));
        Task shaking = isServer
            ? stream.HandshakeAsServerAsync(Handshakes.ServerOptions(SslProtocols.None))
            : stream.HandshakeAsClientAsync(Handshakes.ClientOptions(SslProtocols.None));
        if (!isServer)
        {
            // Reads the whole ClientHello, so that closing is not a reset.
            byte[] hello = new byte[16 * 1024];
            Assert.NotEqual(0, await raw.ReceiveAsync(hello).WaitAsync(Limits.Wait));
        }

        byte[] says = peer switch
        {
            "plain text" => "Hello, I am a plain text protocol of the old days.\r\n"u8.ToArray(),
            "HTTP" when isServer => "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"u8.ToArray(),
            "HTTP" => "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"u8.ToArray(),
            "SSH" => "SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n"u8.ToArray(),
            "TLS 1.1" => isServer ? s_tls11ClientHello : s_tls11ServerHello,
            "closes inside a record" => [22, 3, 3, 0, 200, 1, 2, 3, 4],
            "alert" => [21, 3, 3, 0, 2, 2, 40],
            _ => [],
        };
        await raw.SendAsync(says);
        if (peer == "resets")
        {
            raw.LingerState = new LingerOption(true, 0);
            raw.Dispose();
        }
        else
        {
            raw.Shutdown(SocketShutdown.Send);
        }

        return Assert.IsType<Exception>(await Record.ExceptionAsync(() => shaking.InTime($"a handshake with: {peer}")), exactMatch: false);
    }

    /// <summary>Begins the handshake after the peer's reset has arrived.</summary>
    private static async Task<Exception> MeetNobodyAsync(TlsMode mode, bool isServer)
    {
        using SocketPair sockets = await SocketPair.ConnectAsync();
        (Socket own, Socket other) = isServer ? (sockets.Server, sockets.Client) : (sockets.Client, sockets.Server);
        await using SslStream stream = Modes.Create(mode, new NetworkStream(own));
        other.Close(0);
        Assert.True(own.Poll(Limits.Wait, SelectMode.SelectRead), "Waited for the reset");

        Exception failure = Assert.IsType<Exception>(await Record.ExceptionAsync(() => ShakeAsync().InTime()), exactMatch: false);
        if (mode != TlsMode.Stock)
        {
            Assert.Same(failure, await Record.ExceptionAsync(() => ShakeAsync().InTime()));
        }

        return failure;

        async Task ShakeAsync() => await (isServer
            ? stream.HandshakeAsServerAsync(Handshakes.ServerOptions(SslProtocols.None))
            : stream.HandshakeAsClientAsync(Handshakes.ClientOptions(SslProtocols.None)));
    }
}

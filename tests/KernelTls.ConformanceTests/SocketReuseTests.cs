using System.Net.Security;
using System.Net.Sockets;
using System.Security.Authentication;
using KernelTls.Tests;

namespace KernelTls.ConformanceTests;

/// <summary>Tests a socket that is used after the TLS connection on it has ended, as FTP's CCC command does (RFC 4217, section 3).</summary>
public class SocketReuseTests
{
    /// <summary>Gets modes, versions, and whether the stream is disposed synchronously.</summary>
    public static TheoryData<TlsMode, SslProtocols, bool> All => Modes.AllWith(false, true);

    [Theory]
    [MemberData(nameof(All))]
    public async Task Plain_text_follows_TLS_if_the_options_allow_it(TlsMode mode, SslProtocols version, bool blocking)
    {
        foreach (bool isServer in new[] { false, true })
        {
            await using Session session = await Session.ConnectAsync(mode, version, isServer, allow: true);
            AssertNotInKernel(mode, session.Own);
            await session.EndAsync(blocking);

            await session.OwnTransport.WriteAsync(new byte[] { 1, 2, 3 }).InTime("plain text to the peer");
            await session.PeerTransport.WriteAsync(new byte[] { 4, 5 }).InTime("plain text of the peer");

            byte[] received = new byte[3];
            await session.PeerTransport.ReadExactlyAsync(received).InTime("plain text at the peer");
            Assert.Equal([1, 2, 3], received);
            await session.OwnTransport.ReadExactlyAsync(received.AsMemory(0, 2)).InTime("plain text of the peer");
            Assert.Equal([4, 5], received[..2]);
        }
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task Another_handshake_follows_if_the_options_allow_it(TlsMode mode, SslProtocols version, bool blocking)
    {
        await using Session session = await Session.ConnectAsync(mode, version, isServer: false, allow: true);
        for (int i = 0; i < 3; i++)
        {
            await session.EndAsync(blocking);
            await session.ShakeAsync(mode, version, allow: true);
            AssertNotInKernel(mode, session.Own);
        }
    }

    /// <summary>Nothing may leave as a record that the peer does not expect, and nothing may wait for one that does not come.</summary>
    [Theory]
    [MemberData(nameof(All))]
    public async Task With_kernel_TLS_the_socket_ends_and_without_it_goes_on(TlsMode mode, SslProtocols version, bool blocking)
    {
        foreach (bool isServer in new[] { false, true })
        {
            await using Session session = await Session.ConnectAsync(mode, version, isServer, allow: false);
            (bool sends, bool receives) = InKernel(session.Own);
            await session.EndAsync(blocking);

            Exception? failure = await Record.ExceptionAsync(() => session.OwnTransport.WriteAsync(new byte[] { 1, 2, 3 }).AsTask().InTime("a write"));
            byte[] received = new byte[100];
            int count = await session.PeerTransport.ReadAsync(received).InTime("what the peer receives");

            Assert.Equal(sends, failure is InvalidOperationException);
            Assert.Equal(!sends, session.OwnTransport.CanWrite);
            Assert.Equal(sends ? [] : [1, 2, 3], received[..count]);
            await session.PeerTransport.WriteAsync(new byte[] { 4, 5 }).InTime("plain text of the peer");
            await session.PeerTransport.WriteAsync(new byte[] { 4, 5 }).InTime("more of it, which no reset has prevented");
            failure = await Record.ExceptionAsync(async () => count = await session.OwnTransport.ReadAsync(received).InTime("a read"));
            Assert.Equal(receives, failure is InvalidOperationException);
            Assert.True(receives || count is 2 or 4, $"{count} bytes");
        }
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task With_kernel_TLS_another_handshake_is_refused_at_once(TlsMode mode, SslProtocols version, bool blocking)
    {
        await using Session session = await Session.ConnectAsync(mode, version, isServer: false, allow: false);
        bool isKernel = InKernel(session.Own).Sends;
        await session.EndAsync(blocking);

        if (isKernel)
        {
            Assert.Throws<ArgumentException>(() => Modes.Create(mode, session.OwnTransport));
            Assert.Throws<ArgumentException>(() => new SslStream(session.OwnTransport));
            Assert.Throws<IOException>(() => new NetworkStream(session.OwnSocket));
            return;
        }

        await using SslStream next = Modes.Create(mode, session.OwnTransport, leaveInnerStreamOpen: true);
        await using SslStream peer = new(session.PeerTransport, leaveInnerStreamOpen: true);
        await Task.WhenAll(
            next.HandshakeAsClientAsync(Handshakes.ClientOptions(version)),
            peer.AuthenticateAsServerAsync(Handshakes.ServerOptions(version))).InTime("another handshake");
    }

    private static (bool Sends, bool Receives) InKernel(SslStream stream) =>
        stream is KtlsStream { Offload: var offload } ? (offload.Send == KtlsDataPath.Kernel, offload.Receive == KtlsDataPath.Kernel) : default;

    private static void AssertNotInKernel(TlsMode mode, SslStream stream)
    {
        Assert.Equal((false, false), InKernel(stream));
        if (mode == TlsMode.Kernel)
        {
            Assert.Equal(KtlsFallbackReason.SocketReused, Assert.IsType<KtlsStream>(stream).Offload.SendFallbackReason);
        }
    }

    /// <summary>An end in the mode under test and a stock peer, whose streams leave the sockets open.</summary>
    private sealed class Session : IAsyncDisposable
    {
        private readonly SocketPair _sockets;
        private readonly bool _isServer;
        private SslStream? _own;
        private SslStream? _peer;

        private Session(SocketPair sockets, bool isServer)
        {
            _sockets = sockets;
            _isServer = isServer;
            OwnTransport = new NetworkStream(OwnSocket);
            PeerTransport = new NetworkStream(isServer ? sockets.Client : sockets.Server);
        }

        public Socket OwnSocket => _isServer ? _sockets.Server : _sockets.Client;

        public NetworkStream OwnTransport { get; }

        public NetworkStream PeerTransport { get; }

        public SslStream Own => _own!;

        public static async Task<Session> ConnectAsync(TlsMode mode, SslProtocols version, bool isServer, bool allow)
        {
            Session session = new(await SocketPair.ConnectAsync(), isServer);
            await session.ShakeAsync(mode, version, allow);
            if (!allow)
            {
                Modes.AssertIn(mode, session.Own);
            }

            return session;
        }

        public async Task ShakeAsync(TlsMode mode, SslProtocols version, bool allow)
        {
            _own = Modes.Create(mode, OwnTransport, leaveInnerStreamOpen: true, tune: o => o.AllowSocketReuse = allow);
            _peer = new SslStream(PeerTransport, leaveInnerStreamOpen: true);
            (SslStream client, SslStream server) = _isServer ? (_peer, _own) : (_own, _peer);
            await Task.WhenAll(
                client.HandshakeAsClientAsync(Handshakes.ClientOptions(version)),
                server.HandshakeAsServerAsync(Handshakes.ServerOptions(version))).InTime("a handshake");
            await client.WriteAsync(new byte[1]).InTime("a byte to the server");
            Assert.Equal(1, await server.ReadAsync(new byte[1]).InTime("the client's byte"));
            await server.WriteAsync(new byte[1]).InTime("a byte to the client");
            Assert.Equal(1, await client.ReadAsync(new byte[1]).InTime("the server's byte"));
        }

        /// <summary>Ends TLS in both directions. A stock stream reads no further than close_notify, because nothing follows it yet.</summary>
        public async Task EndAsync(bool blocking)
        {
            await _own!.ShutdownAsync().InTime("close_notify");
            Assert.Equal(0, await _peer!.ReadAsync(new byte[1]).InTime("close_notify at the peer"));
            await _peer.ShutdownAsync().InTime("the peer's close_notify");
            Assert.Equal(0, await _own.ReadAsync(new byte[1]).InTime("the peer's close_notify"));
            await (blocking ? Limits.Blocking(_own.Dispose) : _own.DisposeAsync().AsTask()).InTime("the disposal");
            await _peer.DisposeAsync();
        }

        public async ValueTask DisposeAsync()
        {
            await Own.DisposeAsync();
            await OwnTransport.DisposeAsync();
            await PeerTransport.DisposeAsync();
            _sockets.Dispose();
        }
    }
}

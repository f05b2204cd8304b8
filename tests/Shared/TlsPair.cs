using System.Net.Security;
using System.Net.Sockets;
using System.Security.Authentication;

namespace KernelTls.Tests;

/// <summary>Represents two streams over one loopback connection, after a successful handshake.</summary>
internal sealed class TlsPair : IAsyncDisposable
{
    /// <summary>A size for which a write has to wait after <see cref="ShrinkBuffers"/>.</summary>
    public const int MoreThanFits = 8 << 20;

    private readonly SocketPair _sockets;

    private TlsPair(SocketPair sockets, SslStream client, SslStream server)
    {
        _sockets = sockets;
        Client = client;
        Server = server;
    }

    public SslStream Client { get; }

    public SslStream Server { get; }

    public Socket ClientSocket => _sockets.Client;

    public Socket ServerSocket => _sockets.Server;

    /// <summary>Connects both ends in the same mode.</summary>
    public static Task<TlsPair> ConnectAsync(
        TlsMode mode,
        SslProtocols version,
        Action<SslClientAuthenticationOptions>? client = null,
        Action<SslServerAuthenticationOptions>? server = null,
        bool leaveInnerStreamOpen = false,
        Action<KtlsOptions>? tune = null) =>
        ConnectAsync(mode, mode, version, client, server, leaveInnerStreamOpen, tune);

    public static async Task<TlsPair> ConnectAsync(
        TlsMode clientMode,
        TlsMode serverMode,
        SslProtocols version,
        Action<SslClientAuthenticationOptions>? client = null,
        Action<SslServerAuthenticationOptions>? server = null,
        bool leaveInnerStreamOpen = false,
        Action<KtlsOptions>? tune = null,
        SocketPair? sockets = null)
    {
        TlsPair pair = Create(sockets ?? await SocketPair.ConnectAsync(), clientMode, serverMode, leaveInnerStreamOpen, tune);
        SslClientAuthenticationOptions clientOptions = Handshakes.ClientOptions(version);
        SslServerAuthenticationOptions serverOptions = Handshakes.ServerOptions(version);
        client?.Invoke(clientOptions);
        server?.Invoke(serverOptions);
        await Task.WhenAll(pair.Client.HandshakeAsClientAsync(clientOptions), pair.Server.HandshakeAsServerAsync(serverOptions))
            .InTime($"a handshake, {clientMode} with {serverMode}");
        Modes.AssertIn(clientMode, pair.Client);
        Modes.AssertIn(serverMode, pair.Server);
        return pair;
    }

    /// <summary>Creates a connected pair that is not yet authenticated.</summary>
    public static async Task<TlsPair> CreateAsync(TlsMode clientMode, TlsMode serverMode, bool leaveInnerStreamOpen = false) =>
        Create(await SocketPair.ConnectAsync(), clientMode, serverMode, leaveInnerStreamOpen);

    /// <summary>Creates a pair over the specified sockets that is not yet authenticated.</summary>
    public static TlsPair Create(
        SocketPair sockets, TlsMode clientMode, TlsMode serverMode, bool leaveInnerStreamOpen = false, Action<KtlsOptions>? tune = null) =>
        new(
            sockets,
            Modes.Create(clientMode, new NetworkStream(sockets.Client, ownsSocket: true), leaveInnerStreamOpen, tune: tune),
            Modes.Create(serverMode, new NetworkStream(sockets.Server, ownsSocket: true), leaveInnerStreamOpen, tune: tune));

    /// <summary>Creates a connected pair with separate options that is not yet authenticated.</summary>
    public static async Task<TlsPair> CreateAsync(KtlsOptions client, KtlsOptions server)
    {
        SocketPair sockets = await SocketPair.ConnectAsync();
        return new TlsPair(
            sockets,
            new KtlsStream(new NetworkStream(sockets.Client, ownsSocket: true), false, client),
            new KtlsStream(new NetworkStream(sockets.Server, ownsSocket: true), false, server));
    }

    /// <summary>Exchanges data both ways and closes.</summary>
    public async Task ExchangeAsync(int size = 300_000)
    {
        await Task.WhenAll(
            Pattern.SendAsync(Client, size),
            Pattern.SendAsync(Server, size, chunk: 10_000),
            Pattern.ReceiveAsync(Client, size),
            Pattern.ReceiveAsync(Server, size)).InTime("data both ways");
        await Client.ShutdownAsync().InTime("close_notify to be sent");
        Assert.Equal(0, await Server.ReadAsync(new byte[1]).InTime("the client's close_notify"));
    }

    /// <summary>Shrinks the sockets' buffers, so that a write of <see cref="MoreThanFits"/> bytes has to wait for the reader.</summary>
    public void ShrinkBuffers()
    {
        foreach (Socket socket in new[] { ClientSocket, ServerSocket })
        {
            socket.SendBufferSize = 128 * 1024;
            socket.ReceiveBufferSize = 128 * 1024;
        }
    }

    public async ValueTask DisposeAsync()
    {
        await Client.DisposeAsync();
        await Server.DisposeAsync();
        _sockets.Dispose();
    }
}

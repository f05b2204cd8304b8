using System.Net;
using System.Net.Sockets;
using System.Runtime.InteropServices;
using System.Security.Authentication;
using System.Text;
using KernelTls.Interop;
using KernelTls.Tests;

namespace KernelTls.ConformanceTests;

/// <summary>
/// Tests sockets that already have another layer: each has its own reason, kernel TLS is not used, OpenSSL on the socket is if it was
/// requested, and the connection works.
/// </summary>
[Trait("Pitfall", "18")]
public class SocketLayerTests
{
    private const int MultipathTcp = 262;
    private const int Invalid = 22;

    public static TheoryData<TlsMode> OnOpenSsl => [.. Modes.OnOpenSsl];

    public static TheoryData<TlsMode, SslProtocols> All => Modes.AllOnOpenSsl;

    /// <summary>Gets the modes with what takes the kernel's place: OpenSSL on the socket, or for the kernel either.</summary>
    public static TheoryData<TlsMode, SslProtocols, KtlsFallback> WithFallbacks =>
        [.. from row in Modes.AllOnOpenSsl
            from fallback in row.Data.Item1 == TlsMode.Kernel ? new[] { KtlsFallback.SslStream, KtlsFallback.OpenSsl } : [KtlsFallback.OpenSsl]
            select new TheoryDataRow<TlsMode, SslProtocols, KtlsFallback>(row.Data.Item1, row.Data.Item2, fallback)];

    [Theory]
    [MemberData(nameof(WithFallbacks))]
    public async Task A_socket_in_a_sockmap_is_not_for_the_kernel(TlsMode mode, SslProtocols version, KtlsFallback fallback)
    {
        using Sockmap map = Sockmap.Create();
        await using TlsPair pair = await TlsPair.CreateAsync(OptionsOf(mode, fallback), OptionsOf(mode, fallback));
        Assert.Equal(0, map.Add(0, pair.ClientSocket));
        Assert.Equal(0, map.Add(1, pair.ServerSocket));
        await ShakeAsync(pair, version);

        AssertNotInKernel(mode, fallback, KtlsFallbackReason.Sockmap, pair.Client, pair.Server);
        Assert.True(KernelWord.LayerOf(pair.ServerSocket) is SocketLayer.None or SocketLayer.Sockmap, "the socket has a TLS layer");
        await pair.ExchangeAsync();
    }

    /// <summary>Pending data hides the sockmap. The server checks again when it has read that data.</summary>
    [Theory]
    [MemberData(nameof(All))]
    public async Task A_ClientHello_that_is_there_already_hides_no_sockmap(TlsMode mode, SslProtocols version)
    {
        using Sockmap map = Sockmap.Create();
        await using TlsPair pair = await TlsPair.CreateAsync(TlsMode.DirectOpenSsl, mode);
        Assert.Equal(0, map.Add(0, pair.ServerSocket));
        Task client = pair.Client.HandshakeAsClientAsync(Handshakes.ClientOptions(version));
        Assert.True(pair.ServerSocket.Poll(Limits.Wait, SelectMode.SelectRead), "no ClientHello came");
        await Task.WhenAll(client, pair.Server.HandshakeAsServerAsync(Handshakes.ServerOptions(version))).InTime("a handshake");

        KtlsFallbackReason reason = mode == TlsMode.Kernel ? KtlsFallbackReason.Sockmap : KtlsFallbackReason.DisabledByMode;
        Assert.Equal(
            new KtlsOffload(KtlsDataPath.OpenSsl, reason, KtlsDataPath.OpenSsl, reason), ((KtlsStream)pair.Server).Offload);
        Assert.Equal(KtlsDirections.None, KernelWord.DirectionsOf(pair.ServerSocket));
        await pair.ExchangeAsync();
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task A_connection_in_the_kernel_is_not_let_into_a_sockmap(TlsMode mode, SslProtocols version)
    {
        using Sockmap map = Sockmap.Create();
        await using TlsPair pair = await TlsPair.ConnectAsync(mode, version);

        // Without "tls" the kernel accepts the socket, between two records as at any other time.
        int outcome = map.Add(0, pair.ClientSocket);

        Assert.Equal(KernelWord.LayerOf(pair.ClientSocket) is SocketLayer.UpperLayerProtocol or SocketLayer.TlsKeys ? Invalid : 0, outcome);
        Assert.True(mode != TlsMode.Kernel || outcome == Invalid, "a socket with keys in the kernel was let in");
        await pair.ExchangeAsync();
    }

    [Theory]
    [MemberData(nameof(WithFallbacks))]
    [Trait("needs", "mptcp")]
    [Trait("cell", "race")]
    public async Task MPTCP_is_not_for_the_kernel(TlsMode mode, SslProtocols version, KtlsFallback fallback)
    {
        using SocketPair sockets = await ConnectMultipathAsync();
        await using KtlsStream client = new(new NetworkStream(sockets.Client), false, OptionsOf(mode, fallback));
        await using KtlsStream server = new(new NetworkStream(sockets.Server), false, OptionsOf(mode, fallback));
        await Task.WhenAll(
            client.AuthenticateAsClientAsync(Handshakes.ClientOptions(version)),
            server.AuthenticateAsServerAsync(Handshakes.ServerOptions(version))).InTime("a handshake over MPTCP");

        AssertNotInKernel(mode, fallback, KtlsFallbackReason.Mptcp, client, server);
        await Task.WhenAll(Pattern.SendAsync(client, 300_000), Pattern.ReceiveAsync(server, 300_000)).InTime("data over MPTCP");
        await client.ShutdownAsync().InTime("close_notify to be sent");
        Assert.Equal(0, await server.ReadAsync(new byte[1]).InTime("the client's close_notify"));
    }

    /// <summary>
    /// Tools convert a program's TCP sockets to MPTCP without its knowledge: .NET still regards them as TCP.
    /// </summary>
    [Theory]
    [MemberData(nameof(OnOpenSsl))]
    [Trait("needs", "mptcp")]
    [Trait("cell", "race")]
    public async Task MPTCP_in_disguise_is_known_as_well(TlsMode mode)
    {
        using Socket listener = new(AddressFamily.InterNetwork, SocketType.Stream, ProtocolType.Tcp);
        listener.Bind(new IPEndPoint(IPAddress.Loopback, 0));
        listener.Listen(1);
        using Socket client = new(AddressFamily.InterNetwork, SocketType.Stream, ProtocolType.Tcp);
        using (Socket multipath = NewMultipath())
        {
            Assert.Equal((int)client.Handle, Duplicate((int)multipath.Handle, (int)client.Handle));
        }

        await client.ConnectAsync(listener.LocalEndPoint!).InTime("connecting");
        using Socket server = await listener.AcceptAsync().InTime("accepting");
        Assert.Equal(ProtocolType.Tcp, client.ProtocolType);
        await using KtlsStream own = new(new NetworkStream(client), false, Modes.OptionsOf(mode));
        await using KtlsStream stock = new(new NetworkStream(server), false, Modes.OptionsOf(TlsMode.Managed));
        await Task.WhenAll(
            own.AuthenticateAsClientAsync(Handshakes.ClientOptions(SslProtocols.Tls13)),
            stock.AuthenticateAsServerAsync(Handshakes.ServerOptions(SslProtocols.Tls13))).InTime("a handshake");

        AssertNotInKernel(mode, KtlsFallback.Environment, KtlsFallbackReason.Mptcp, own);
    }

    [Theory]
    [MemberData(nameof(WithFallbacks))]
    public async Task A_socket_that_has_an_upper_layer_protocol_is_not_for_the_kernel(TlsMode mode, SslProtocols version, KtlsFallback fallback)
    {
        Cell.RequireKtls();
        await using TlsPair pair = await TlsPair.CreateAsync(OptionsOf(mode, fallback), OptionsOf(mode, fallback));
        pair.ClientSocket.SetRawSocketOption(6, 31, Encoding.ASCII.GetBytes("tls\0"));
        pair.ServerSocket.SetRawSocketOption(6, 31, Encoding.ASCII.GetBytes("tls\0"));
        await ShakeAsync(pair, version);

        AssertNotInKernel(mode, fallback, KtlsFallbackReason.UlpInUse, pair.Client, pair.Server);
        await pair.ExchangeAsync();
    }

    /// <summary>
    /// The kernel accepts "tls" only on an established connection, and OpenSSL would continue without an error.
    /// </summary>
    [Theory]
    [Trait("Pitfall", "8")]
    [MemberData(nameof(All))]
    public async Task A_socket_that_is_not_connected_any_more_is_left_to_SslStream(TlsMode mode, SslProtocols version)
    {
        await using TlsPair pair = await TlsPair.CreateAsync(mode, mode);
        pair.ClientSocket.Disconnect(reuseSocket: false);
        List<string> fallbacks = Fallbacks.Collect();
        await Assert.ThrowsAnyAsync<IOException>(
            () => pair.Client.HandshakeAsClientAsync(Handshakes.ClientOptions(version)).InTime("a handshake on a closed connection"));

        Assert.Equal([$"{KtlsFallbackReason.NotConnected}"], fallbacks);
    }

    /// <summary>Performs the handshake. The server checks its socket before the client sends anything.</summary>
    private static Task ShakeAsync(TlsPair pair, SslProtocols version) => Task.WhenAll(
        pair.Server.HandshakeAsServerAsync(Handshakes.ServerOptions(version)),
        pair.Client.HandshakeAsClientAsync(Handshakes.ClientOptions(version))).InTime("a handshake");

    private static KtlsOptions OptionsOf(TlsMode mode, KtlsFallback fallback)
    {
        KtlsOptions options = Modes.OptionsOf(mode);
        options.Fallback = fallback;
        return options;
    }

    /// <summary>
    /// Asserts the data paths: SslStream where the kernel's place was not given to OpenSSL, which cannot tell such a socket from another.
    /// </summary>
    private static void AssertNotInKernel(TlsMode mode, KtlsFallback fallback, KtlsFallbackReason reason, params Stream[] streams)
    {
        string path = mode == TlsMode.DirectOpenSsl ? $"openssl ({KtlsFallbackReason.DisabledByMode})"
            : fallback == KtlsFallback.OpenSsl ? $"openssl ({reason})"
            : $"managed ({reason})";
        Assert.All(streams, s =>
        {
            KtlsOffload offload = Assert.IsType<KtlsStream>(s).Offload;
            Assert.Equal($"send={path} receive={path}", $"{offload}");
            Assert.Equal(fallback == KtlsFallback.SslStream, offload.OpenSslFallbackReason == KtlsFallbackReason.DisabledByMode);
        });
    }

    private static async Task<SocketPair> ConnectMultipathAsync()
    {
        using Socket listener = NewMultipath();
        listener.Bind(new IPEndPoint(IPAddress.Loopback, 0));
        listener.Listen(1);
        Socket client = NewMultipath();
        Task<Socket> accepting = listener.AcceptAsync();
        await client.ConnectAsync(listener.LocalEndPoint!).InTime("an MPTCP connection over loopback");
        return new SocketPair(client, await accepting.InTime("accepting the connection"));
    }

    private static Socket NewMultipath()
    {
        const int Inet = 2;
        const int Stream = 1;
        int descriptor = NewSocket(Inet, Stream, MultipathTcp);
        if (descriptor < 0)
        {
            int error = Marshal.GetLastPInvokeError();
            Assert.False(Cell.IsLab, $"no MPTCP in the cell: errno {error}");
            Assert.Skip($"no MPTCP here: errno {error}");
        }

        return new Socket(new SafeSocketHandle(descriptor, ownsHandle: true));
    }

    [DllImport("libc", EntryPoint = "socket", SetLastError = true)]
    private static extern int NewSocket(int family, int type, int protocol);

    [DllImport("libc", EntryPoint = "dup2", SetLastError = true)]
    private static extern int Duplicate(int from, int to);
}

using System.Globalization;
using System.Net;
using System.Net.Security;
using System.Net.Sockets;
using System.Security.Authentication;
using KernelTls.Tests;

namespace KernelTls.FunctionalTests;

/// <summary>Listens for peers that are other programs.</summary>
internal sealed class ForeignPeer : IDisposable
{
    private readonly Socket _listener = new(AddressFamily.InterNetwork, SocketType.Stream, ProtocolType.Tcp);

    public ForeignPeer()
    {
        _listener.Bind(new IPEndPoint(IPAddress.Loopback, 0));
        _listener.Listen(5);
    }

    public int Port => ((IPEndPoint)_listener.LocalEndPoint!).Port;

    public string PortText => Port.ToString(CultureInfo.InvariantCulture);

    /// <summary>Accepts the next connection, and performs a handshake in the specified mode.</summary>
    public async Task<KtlsStream> AcceptAsync(
        TlsMode mode, SslProtocols version, Action<SslServerAuthenticationOptions>? configure = null)
    {
        Socket socket = await _listener.AcceptAsync().InTime("the program to connect");
        socket.NoDelay = true;
        KtlsStream stream = (KtlsStream)Modes.Create(mode, new NetworkStream(socket, ownsSocket: true));
        SslServerAuthenticationOptions options = Handshakes.ServerOptions(version);
        configure?.Invoke(options);
        return await ShakeAsync(mode, stream, stream.AuthenticateAsServerAsync(options));
    }

    /// <summary>
    /// Accepts the next connection, performs a TLS 1.3 handshake with these options, and returns the stream and its
    /// socket.
    /// </summary>
    public async Task<(KtlsStream Stream, Socket Socket)> AcceptAsync(
        KtlsOptions options, Action<SslServerAuthenticationOptions>? configure = null)
    {
        Socket socket = await _listener.AcceptAsync().InTime("the program to connect");
        socket.NoDelay = true;
        KtlsStream stream = new(new NetworkStream(socket, ownsSocket: true), false, options);
        SslServerAuthenticationOptions server = Handshakes.ServerOptions(SslProtocols.Tls13);
        configure?.Invoke(server);
        await stream.AuthenticateAsServerAsync(server).InTime("a handshake with the program");
        return (stream, socket);
    }

    /// <summary>Connects to a listening program and performs the handshake.</summary>
    public static async Task<KtlsStream> ConnectAsync(
        int port, TlsMode mode, SslProtocols version, Action<SslClientAuthenticationOptions>? configure = null)
    {
        KtlsStream stream = await OpenAsync(port, mode);
        SslClientAuthenticationOptions options = Handshakes.ClientOptions(version);
        configure?.Invoke(options);
        return await ShakeAsync(mode, stream, stream.AuthenticateAsClientAsync(options));
    }

    /// <summary>Connects to a listening program without the handshake.</summary>
    public static async Task<KtlsStream> OpenAsync(int port, TlsMode mode)
    {
        Socket socket = new(AddressFamily.InterNetwork, SocketType.Stream, ProtocolType.Tcp) { NoDelay = true };
        await socket.ConnectAsync(IPAddress.Loopback, port).InTime("connecting to the program");
        return (KtlsStream)Modes.Create(mode, new NetworkStream(socket, ownsSocket: true));
    }

    public void Dispose() => _listener.Dispose();

    /// <summary>
    /// Performs the handshake. A refused connection is closed at once, because the program waits for that.
    /// </summary>
    private static async Task<KtlsStream> ShakeAsync(TlsMode mode, KtlsStream stream, Task handshake)
    {
        try
        {
            await handshake.InTime("a handshake with the program");
            Modes.AssertIn(mode, stream);
            return stream;
        }
        catch
        {
            await stream.DisposeAsync();
            throw;
        }
    }
}

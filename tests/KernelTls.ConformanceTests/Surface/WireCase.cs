using System.Net.Security;
using System.Net.Sockets;
using System.Security.Authentication;
using KernelTls.Tests;

namespace KernelTls.ConformanceTests;

/// <summary>Describes a configuration of one end, whose messages an <see cref="OpenSslPeer"/> records.</summary>
/// <param name="Name">The option that it is about, and what is special about it.</param>
/// <param name="IsServer">Whether the end under test is the server.</param>
/// <param name="Version">The versions of that end.</param>
internal sealed record WireCase(string Name, bool IsServer, SslProtocols Version)
{
    public Action<SslClientAuthenticationOptions>? Client { get; init; }

    public Action<SslServerAuthenticationOptions>? Server { get; init; }

    /// <summary>Gets the handshake of a server that does not pass its options directly.</summary>
    public Func<SslStream, SslServerAuthenticationOptions, Task>? ServerHandshake { get; init; }

    public Func<OpenSslPeerOptions, OpenSslPeerOptions>? Peer { get; init; }

    public RemoteCertificateValidationCallback? Validation { get; init; }

    public LocalCertificateSelectionCallback? Selection { get; init; }

    /// <summary>Gets the number of connections, of which the later ones may resume the session of the first.</summary>
    public int Connections { get; init; } = 1;

    /// <summary>Gets a value that indicates whether the stream is disposed without a shutdown.</summary>
    public bool OnlyDisposes { get; init; }

    /// <summary>Gets the reason for which the end leaves its mode.</summary>
    public KtlsFallbackReason Fallback { get; init; }

    public override string ToString() => $"{(IsServer ? "server" : "client")}, {VersionName}, {Name}";

    private string VersionName => Version switch
    {
        SslProtocols.Tls12 => "TLS 1.2",
        SslProtocols.Tls13 => "TLS 1.3",
        SslProtocols.None => "default versions",
        _ => "both versions",
    };

    /// <summary>Runs the case and returns what the peer has seen.</summary>
    public async Task<Surface> RunAsync(TlsMode mode)
    {
        Surface surface = new();
        string host = SurfaceHosts.New();
        OpenSslPeerOptions options = new()
        {
            Certificate = IsServer ? null : Certificates.Ecdsa,
            ServerName = host,
        };
        options = Peer?.Invoke(options) ?? options;
        nint context = OpenSslPeer.NewContext(!IsServer, options);
        nint session = 0;
        await using SurfaceStreams open = new();
        try
        {
            for (int i = 0; i < Connections; i++)
            {
                string prefix = i == 0 ? "" : "again: ";
                using SocketPair sockets = await SocketPair.ConnectAsync();
                using OpenSslPeer peer = new(context, IsServer ? sockets.Client : sockets.Server, !IsServer, options, session);
                Task<string> meeting = MeetAsync(peer, IsServer ? sockets.Client : sockets.Server);
                Socket socket = IsServer ? sockets.Server : sockets.Client;
                await ShakeAsync(mode, socket, host, open);
                if (i == Connections - 1)
                {
                    await open.DisposeAsync();
                }
                else
                {
                    SurfaceStreams.End(socket);
                }

                surface.Add($"{prefix}end", await meeting.InTime($"{this}: the peer's part"));
                WireSurface.Describe(surface, prefix, peer.Received, peer.IsTls13);
                LibSsl.FreeSession(session);
                session = IsServer ? peer.TakeSession() : 0;
            }
        }
        finally
        {
            LibSsl.FreeSession(session);
            LibSsl.FreeContext(context);
        }

        return surface;
    }

    private static async Task<string> MeetAsync(OpenSslPeer peer, Socket socket)
    {
        string end = await peer.RunAsync();
        socket.Dispose();
        return end;
    }

    private async Task ShakeAsync(TlsMode mode, Socket socket, string host, SurfaceStreams open)
    {
        SslStream stream = Modes.Create(mode, new NetworkStream(socket, ownsSocket: true), false, Validation, Selection);
        try
        {
            await HandshakeAsync(stream, host).InTime($"{this}: the handshake");
        }
        catch (Exception e) when (e is not (TimeoutException or Xunit.Sdk.XunitException))
        {
            await stream.DisposeAsync();
            return;
        }

        open.Keep(stream);
        if (Fallback == KtlsFallbackReason.None)
        {
            Modes.AssertIn(mode, stream);
        }

        byte[] one = new byte[1];
        try
        {
            await stream.WriteAsync(one).InTime($"{this}: a write");
            await stream.ReadExactlyAsync(one).InTime($"{this}: a byte from the peer");
            if (!OnlyDisposes)
            {
                await stream.ShutdownAsync().InTime($"{this}: a shutdown");
            }
        }
        catch (IOException)
        {
            // The peer has refused this end.
        }
    }

    private Task HandshakeAsync(SslStream stream, string host)
    {
        if (IsServer)
        {
            SslServerAuthenticationOptions server = Handshakes.ServerOptions(Version);
            Server?.Invoke(server);
            return ServerHandshake?.Invoke(stream, server) ?? stream.HandshakeAsServerAsync(server);
        }

        SslClientAuthenticationOptions client = Handshakes.ClientOptions(Version);
        client.TargetHost = host;
        client.RemoteCertificateValidationCallback = Validation is null ? (_, _, _, _) => true : null;
        Client?.Invoke(client);
        return stream.HandshakeAsClientAsync(client);
    }
}

using System.Net.Security;
using System.Net.Sockets;
using System.Security.Authentication;
using KernelTls.Tests;

namespace KernelTls.ConformanceTests;

/// <summary>Describes a connection, whose end under test a caller observes. The other end is SslStream, or a raw socket.</summary>
/// <param name="Name">The name.</param>
/// <param name="IsServer">Whether the end under test is the server.</param>
/// <param name="Version">The version of both ends.</param>
internal sealed record CallerCase(string Name, bool IsServer, SslProtocols Version)
{
    public Action<SslClientAuthenticationOptions, CallerNotes>? Client { get; init; }

    public Action<SslServerAuthenticationOptions, CallerNotes>? Server { get; init; }

    /// <summary>Gets the action that changes the client in the last connection alone.</summary>
    public Action<SslClientAuthenticationOptions, CallerNotes>? LastClient { get; init; }

    /// <summary>Gets a value that indicates whether the server passes its options by a callback.</summary>
    public bool ChoosesOptions { get; init; }

    /// <summary>Gets a value that indicates whether the handshake blocks.</summary>
    public bool Blocks { get; init; }

    /// <summary>Gets the peer, if it is a raw socket.</summary>
    public Func<Socket, Task>? RawPeer { get; init; }

    /// <summary>Gets what happens to the stream while its handshake waits for the peer.</summary>
    public Func<SslStream, Task>? Interrupt { get; init; }

    /// <summary>Gets what follows a successful handshake, instead of a shutdown: what the peer does, and what the caller does.</summary>
    public Func<SslStream, Socket, SslStream, Task>? Then { get; init; }

    /// <summary>Gets a value that indicates whether the inner exceptions of SslStream depend on time.</summary>
    public bool ByTime { get; init; }

    /// <summary>Gets the number of connections to a host, of which the last is observed.</summary>
    public int Connections { get; init; } = 1;

    public override string ToString() =>
        $"{(IsServer ? "server" : "client")}, {(Version == SslProtocols.Tls12 ? "TLS 1.2" : "TLS 1.3")}, {Name}{(Blocks ? ", blocking" : "")}";

    public async Task<Surface> RunAsync(TlsMode mode)
    {
        string host = Connections == 1 ? "localhost" : SurfaceHosts.New();
        await using SurfaceStreams open = new();
        for (int i = 1; i < Connections; i++)
        {
            await ConnectAsync(mode, new Surface(), host, open, isLast: false);
        }

        Surface surface = new();
        await ConnectAsync(mode, surface, host, open, isLast: true);
        return surface;
    }

    private async Task ConnectAsync(TlsMode mode, Surface surface, string host, SurfaceStreams open, bool isLast)
    {
        using SocketPair sockets = await SocketPair.ConnectAsync();
        (Socket own, Socket others) = IsServer ? (sockets.Server, sockets.Client) : (sockets.Client, sockets.Server);
        SslStream stream = Modes.Create(mode, new NetworkStream(own, ownsSocket: true));
        SslStream peer = new(new NetworkStream(others, ownsSocket: true));
        open.Keep(peer);
        CallerMembers.Read(surface, "new", stream, isIdle: true);
        CallerNotes notes = new(surface, stream);
        SslClientAuthenticationOptions client = Handshakes.ClientOptions(Version);
        SslServerAuthenticationOptions server = Handshakes.ServerOptions(Version);
        (client.TargetHost, client.AllowTlsResume) = (host, Connections > 1);
        server.ServerCertificateContext = Connections > 1 ? Certificates.KindContext("wildcard") : server.ServerCertificateContext;
        Client?.Invoke(client, notes);
        Server?.Invoke(server, notes);
        if (isLast)
        {
            LastClient?.Invoke(client, notes);
        }

        Task meeting = RawPeer?.Invoke(others) ?? MeetAsync(peer, others, client, server);
        Exception? failure = await FailureAsync(async () =>
        {
            Task shaking = ShakeAsync(stream, client, server, notes);
            if (Interrupt is not null)
            {
                await CallerCases.WaitAsync(shaking);
                await Interrupt(stream);
            }

            await shaking;
        });
        if (failure is not null)
        {
            if (Interrupt is null)
            {
                surface.Add("failure", SurfaceText.Types(failure));
                surface.Add("failure's message", failure.Message);
            }
            else
            {
                // By time, SslStream's handshake may meet the disposed NetworkStream.
                bool isByTime = mode == TlsMode.Stock && failure is ObjectDisposedException;
                surface.Add("failure", isByTime ? nameof(IOException) : failure.GetType().Name);
            }

            CallerMembers.Read(surface, "failed", stream, isIdle: true);
        }
        else
        {
            Modes.AssertIn(mode, stream);
            CallerMembers.Read(surface, "connected", stream);
            await UseAsync(surface, stream, others, peer);
        }

        if (isLast)
        {
            await stream.DisposeAsync();
            CallerMembers.Read(surface, "disposed", stream, isIdle: true);
        }
        else
        {
            open.Keep(stream);
            SurfaceStreams.End(own);
        }

        await FailureAsync(() => meeting);
    }

    private async Task ShakeAsync(
        SslStream stream, SslClientAuthenticationOptions client, SslServerAuthenticationOptions server, CallerNotes notes)
    {
        if (Blocks)
        {
            await CallerCases.Started(() =>
            {
                if (IsServer)
                {
                    stream.ShakeServer(server);
                }
                else
                {
                    stream.ShakeClient(client);
                }
            });
        }
        else if (ChoosesOptions)
        {
            await stream.HandshakeAsServerAsync(notes.Options(server), "state");
        }
        else
        {
            await (IsServer ? stream.HandshakeAsServerAsync(server) : stream.HandshakeAsClientAsync(client));
        }
    }

    /// <summary>The peer: performs its handshake and, if nothing else is to follow, exchanges a byte each way.</summary>
    private async Task MeetAsync(SslStream peer, Socket socket, SslClientAuthenticationOptions client, SslServerAuthenticationOptions server)
    {
        try
        {
            // The notes are those of the other end. Both trust the same authority.
            client.RemoteCertificateValidationCallback = IsServer ? (_, _, _, _) => true : client.RemoteCertificateValidationCallback;
            await (IsServer ? peer.AuthenticateAsClientAsync(client) : peer.AuthenticateAsServerAsync(server));
            await peer.WriteAsync(new byte[1]);
            if (Then is null)
            {
                byte[] one = new byte[1];
                await peer.ReadExactlyAsync(one);
                while (await peer.ReadAsync(one) > 0)
                {
                }
            }
        }
        catch (Exception)
        {
            socket.Shutdown(SocketShutdown.Send);
            throw;
        }
    }

    private async Task UseAsync(Surface surface, SslStream stream, Socket socket, SslStream peer)
    {
        byte[] one = new byte[1];
        await stream.ReadExactlyAsync(one).InTime($"{this}: a byte from the peer");
        if (Then is not null)
        {
            Exception? failure = await FailureAsync(() => Then(stream, socket, peer));
            surface.Add("failure", failure is null ? "none" : ByTime ? failure.GetType().Name : SurfaceText.Types(failure));
            CallerMembers.Read(surface, "after that", stream);
            return;
        }

        await stream.WriteAsync(one).InTime($"{this}: a write");
        CallerMembers.Read(surface, "used", stream);
        Exception? end = await FailureAsync(() => stream.ShutdownAsync());
        surface.Add("shutdown", end is null ? "done" : SurfaceText.Types(end));
        CallerMembers.Read(surface, "shut down", stream);
    }

    private async Task<Exception?> FailureAsync(Func<Task> work)
    {
        try
        {
            await work().InTime($"{this}");
            return null;
        }
        catch (Exception e) when (e is not (TimeoutException or Xunit.Sdk.XunitException))
        {
            return e;
        }
    }
}

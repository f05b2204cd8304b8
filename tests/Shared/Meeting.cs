using System.Net.Security;
using System.Net.Sockets;
using System.Security.Authentication;

namespace KernelTls.Tests;

/// <summary>
/// Two ends, each in a mode of its own, that shake hands, exchange a byte each way, and are left open. An end that fails stops
/// sending. Asserts of each end that it was in its mode, also where the handshake failed.
/// </summary>
internal sealed class Meeting(TlsMode clientMode, TlsMode serverMode, SslProtocols version) : IAsyncDisposable
{
    private SocketPair? _sockets;
    private SslStream? _client;
    private SslStream? _server;

    /// <summary>Changes the options of <see cref="Handshakes.ClientOptions"/>.</summary>
    public Action<SslClientAuthenticationOptions>? ClientOptions { get; init; }

    /// <summary>Changes the options of <see cref="Handshakes.ServerOptions"/>.</summary>
    public Action<SslServerAuthenticationOptions>? ServerOptions { get; init; }

    /// <summary>The server's handshake, where it is another than by <see cref="ServerOptions"/>.</summary>
    public Func<SslStream, Task>? ServerHandshake { get; init; }

    /// <summary>The client's handshake, where it is another than by <see cref="ClientOptions"/>.</summary>
    public Func<SslStream, Task>? ClientHandshake { get; init; }

    public RemoteCertificateValidationCallback? ClientValidation { get; init; }

    public RemoteCertificateValidationCallback? ServerValidation { get; init; }

    public LocalCertificateSelectionCallback? ClientSelection { get; init; }

    public LocalCertificateSelectionCallback? ServerSelection { get; init; }

    public EncryptionPolicy Policy { get; init; } = EncryptionPolicy.RequireEncryption;

    /// <summary>The one reason for which an end may leave its mode: an option that no engine but SslStream's own has.</summary>
    public KtlsFallbackReason AllowedFallback { get; init; }

    /// <summary>The sockets to meet on, where the connection is not a plain one.</summary>
    public SocketPair? Sockets { get; init; }

    public SslStream Client => _client!;

    public SslStream Server => _server!;

    public Ending ClientEnding { get; private set; } = new(null, null);

    public Ending ServerEnding { get; private set; } = new(null, null);

    public async Task<Meeting> RunAsync()
    {
        _sockets = Sockets ?? await SocketPair.ConnectAsync();
        _client = Modes.Create(
            clientMode, new NetworkStream(_sockets.Client, ownsSocket: true), false, ClientValidation, ClientSelection, Policy);
        _server = Modes.Create(
            serverMode, new NetworkStream(_sockets.Server, ownsSocket: true), false, ServerValidation, ServerSelection, Policy);
        SslClientAuthenticationOptions clientOptions = Handshakes.ClientOptions(version);
        SslServerAuthenticationOptions serverOptions = Handshakes.ServerOptions(version);
        ClientOptions?.Invoke(clientOptions);
        ServerOptions?.Invoke(serverOptions);

        Task<Ending> client = EndAsync(
            clientMode, _client, _sockets.Client, ClientHandshake ?? (s => s.ShakeClientAsync(clientOptions)));
        Task<Ending> server = EndAsync(
            serverMode, _server, _sockets.Server, ServerHandshake ?? (s => s.ShakeServerAsync(serverOptions)));
        await Task.WhenAll(client, server).InTime($"{clientMode} client to meet {serverMode} server");
        ClientEnding = await client;
        ServerEnding = await server;
        AssertModes();
        return this;
    }

    /// <summary>Runs, and asserts that both ends came to a good end.</summary>
    public async Task<Meeting> SucceedAsync()
    {
        await RunAsync();
        if (!ServerEnding.IsGood || !ClientEnding.IsGood)
        {
            await DisposeAsync();
            Assert.Fail($"server: {ServerEnding.Failure}\nclient: {ClientEnding.Failure}");
        }

        return this;
    }

    public async ValueTask DisposeAsync()
    {
        if (_client is not null && _server is not null)
        {
            await _client.DisposeAsync();
            await _server.DisposeAsync();
        }

        _sockets?.Dispose();
    }

    /// <summary>Of an end whose peer gave up, the kernel may have found the connection half closed, and refused its keys.</summary>
    private void AssertModes()
    {
        foreach ((TlsMode mode, SslStream stream, Ending ending, Ending other) in new[]
        {
            (clientMode, _client!, ClientEnding, ServerEnding), (serverMode, _server!, ServerEnding, ClientEnding),
        })
        {
            bool refused = !other.IsGood && stream is KtlsStream { IsAuthenticated: true } own
                && KtlsFallbackReason.PeerClosed is var reason
                && (own.Offload.SendFallbackReason == reason || own.Offload.ReceiveFallbackReason == reason);
            if (ending.Handshake is null && !refused && !HasFallenBack(stream))
            {
                Modes.AssertIn(mode, stream);
            }
        }
    }

    private bool HasFallenBack(SslStream stream) =>
        AllowedFallback != KtlsFallbackReason.None && stream is KtlsStream own && own.Offload.SendFallbackReason == AllowedFallback;

    private async Task<Ending> EndAsync(TlsMode mode, SslStream stream, Socket socket, Func<SslStream, Task> shake)
    {
        List<string> fallbacks = Fallbacks.Collect();
        try
        {
            Exception? failure = await Failure(() => shake(stream));
            bool left = fallbacks is [string reason] && reason == $"{AllowedFallback}";
            if (mode is TlsMode.DirectOpenSsl or TlsMode.Kernel && !left)
            {
                Assert.Empty(fallbacks);
            }

            if (failure is not null)
            {
                StopSending(socket);
                return new Ending(failure, null);
            }

            failure = await Failure(async () =>
            {
                await stream.WriteAsync(new byte[] { 42 });
                byte[] received = new byte[1];
                await stream.ReadExactlyAsync(received);
                Assert.Equal(42, received[0]);
            });
            if (failure is not null)
            {
                StopSending(socket);
            }

            return new Ending(null, failure);
        }
        catch
        {
            // The other end is not to wait for this one.
            socket.Dispose();
            throw;
        }
    }

    private static async Task<Exception?> Failure(Func<Task> work)
    {
        try
        {
            await work();
            return null;
        }
        catch (Exception e) when (e is not Xunit.Sdk.XunitException)
        {
            return e;
        }
    }

    private static void StopSending(Socket socket)
    {
        try
        {
            socket.Shutdown(SocketShutdown.Send);
        }
        catch (Exception e) when (e is SocketException or ObjectDisposedException)
        {
            // It is closed already.
        }
    }
}

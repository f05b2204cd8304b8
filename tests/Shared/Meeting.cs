using System.Net.Security;
using System.Net.Sockets;
using System.Security.Authentication;

namespace KernelTls.Tests;

/// <summary>
/// Connects two ends, each in its own mode, performs the handshake and exchanges a byte each way. The connection stays
/// open.
/// </summary>
/// <remarks>
/// An end that fails stops sending. Asserts that each end was in its mode, even if the handshake failed.
/// </remarks>
internal sealed class Meeting(TlsMode clientMode, TlsMode serverMode, SslProtocols version) : IAsyncDisposable
{
    private SocketPair? _sockets;
    private SslStream? _client;
    private SslStream? _server;

    /// <summary>Gets the action that changes the options of <see cref="Handshakes.ClientOptions"/>.</summary>
    public Action<SslClientAuthenticationOptions>? ClientOptions { get; init; }

    /// <summary>Gets the action that changes the options of <see cref="Handshakes.ServerOptions"/>.</summary>
    public Action<SslServerAuthenticationOptions>? ServerOptions { get; init; }

    /// <summary>Gets the server's handshake, if it does not use <see cref="ServerOptions"/>.</summary>
    public Func<SslStream, Task>? ServerHandshake { get; init; }

    /// <summary>Gets the client's handshake, if it does not use <see cref="ClientOptions"/>.</summary>
    public Func<SslStream, Task>? ClientHandshake { get; init; }

    public RemoteCertificateValidationCallback? ClientValidation { get; init; }

    public RemoteCertificateValidationCallback? ServerValidation { get; init; }

    public LocalCertificateSelectionCallback? ClientSelection { get; init; }

    public LocalCertificateSelectionCallback? ServerSelection { get; init; }

    public EncryptionPolicy Policy { get; init; } = EncryptionPolicy.RequireEncryption;

    /// <summary>
    /// Gets the only reason for which an end may leave its mode: an option that only SslStream supports.
    /// </summary>
    public KtlsFallbackReason AllowedFallback { get; init; }

    /// <summary>Gets the sockets to use, if the connection is not a plain one.</summary>
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
            clientMode, _client, _sockets.Client, ClientHandshake ?? (s => s.HandshakeAsClientAsync(clientOptions)));
        Task<Ending> server = EndAsync(
            serverMode, _server, _sockets.Server, ServerHandshake ?? (s => s.HandshakeAsServerAsync(serverOptions)));
        await Task.WhenAll(client, server).InTime($"{clientMode} client to meet {serverMode} server");
        ClientEnding = await client;
        ServerEnding = await server;
        AssertModes();
        return this;
    }

    /// <summary>Runs, and asserts that both ends succeeded.</summary>
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

    /// <summary>
    /// Asserts the modes. If the peer gave up, the kernel may have found the connection half closed and refused the
    /// keys.
    /// </summary>
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
            // The other end must not wait for this one.
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
            // The stream is already closed.
        }
    }
}

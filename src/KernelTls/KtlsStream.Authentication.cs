using System.Diagnostics.CodeAnalysis;
using System.Net.Security;
using System.Net.Sockets;
using System.Runtime.ExceptionServices;
using System.Security.Authentication;
using KernelTls.Diagnostics;
using KernelTls.Handshake;
using KernelTls.Interop;
using KernelTls.IO;
using KernelTls.Offload;

namespace KernelTls;

// The options-based handshakes: who shakes hands is decided here, once, before the first byte.
public partial class KtlsStream
{
    private int _handshakeStarted;
    private bool? _isServer;
    private KtlsFallbackReason _stays;
    private ExceptionDispatchInfo? _handshakeFailure;
    private Socket? _alertedSocket;

    /// <summary>Shakes hands as a client, blocking; the inner stream's timeouts limit each wait.</summary>
    /// <param name="sslClientAuthenticationOptions">The options; see <see cref="KtlsFallbackReason"/> for those that stay with the base class.</param>
    /// <exception cref="AuthenticationException">The handshake failed.</exception>
    /// <exception cref="KtlsNotAvailableException">Kernel TLS is required and not to be had.</exception>
    /// <exception cref="IOException">The transport failed or ended.</exception>
    public new void AuthenticateAsClient(SslClientAuthenticationOptions sslClientAuthenticationOptions)
    {
        if (TryPrepare(sslClientAuthenticationOptions, out TlsHandshake? handshake))
        {
            Run(handshake);
        }
        else
        {
            base.AuthenticateAsClient(sslClientAuthenticationOptions);
        }
    }

    /// <summary>Shakes hands as a client.</summary>
    /// <param name="sslClientAuthenticationOptions">The options; see <see cref="KtlsFallbackReason"/> for those that stay with the base class.</param>
    /// <param name="cancellationToken">Ends the handshake; the stream is of no use afterwards.</param>
    /// <inheritdoc cref="AuthenticateAsClient(SslClientAuthenticationOptions)" path="/exception"/>
    public new Task AuthenticateAsClientAsync(
        SslClientAuthenticationOptions sslClientAuthenticationOptions, CancellationToken cancellationToken = default)
    {
        ArgumentNullException.ThrowIfNull(sslClientAuthenticationOptions);
        return ShakeHandsAsync();

        async Task ShakeHandsAsync()
        {
            Task handshake = TryPrepare(sslClientAuthenticationOptions, out TlsHandshake? own)
                ? RunAsync(own, cancellationToken)
                : base.AuthenticateAsClientAsync(sslClientAuthenticationOptions, cancellationToken);
            await handshake.ConfigureAwait(false);
        }
    }

    /// <summary>Shakes hands as a server, blocking; the inner stream's timeouts limit each wait.</summary>
    /// <param name="sslServerAuthenticationOptions">The options; see <see cref="KtlsFallbackReason"/> for those that stay with the base class.</param>
    /// <inheritdoc cref="AuthenticateAsClient(SslClientAuthenticationOptions)" path="/exception"/>
    public new void AuthenticateAsServer(SslServerAuthenticationOptions sslServerAuthenticationOptions)
    {
        if (TryPrepare(sslServerAuthenticationOptions, out TlsHandshake? handshake))
        {
            Run(handshake);
        }
        else
        {
            base.AuthenticateAsServer(sslServerAuthenticationOptions);
        }
    }

    /// <summary>Shakes hands as a server.</summary>
    /// <param name="sslServerAuthenticationOptions">The options; see <see cref="KtlsFallbackReason"/> for those that stay with the base class.</param>
    /// <param name="cancellationToken">Ends the handshake; the stream is of no use afterwards.</param>
    /// <inheritdoc cref="AuthenticateAsClient(SslClientAuthenticationOptions)" path="/exception"/>
    public new Task AuthenticateAsServerAsync(
        SslServerAuthenticationOptions sslServerAuthenticationOptions, CancellationToken cancellationToken = default)
    {
        ArgumentNullException.ThrowIfNull(sslServerAuthenticationOptions);
        return ShakeHandsAsync();

        async Task ShakeHandsAsync()
        {
            Task handshake = TryPrepare(sslServerAuthenticationOptions, out TlsHandshake? own)
                ? RunAsync(own, cancellationToken)
                : base.AuthenticateAsServerAsync(sslServerAuthenticationOptions, cancellationToken);
            await handshake.ConfigureAwait(false);
        }
    }

    /// <summary>
    /// Shakes hands as a server whose options are chosen when the ClientHello is known. Options that only the base class can
    /// honour are then refused: it cannot take over any more (<see cref="KtlsNotAvailableException"/>).
    /// </summary>
    /// <param name="optionsCallback">Chooses the options.</param>
    /// <param name="state">Passed to the callback.</param>
    /// <param name="cancellationToken">Ends the handshake.</param>
    /// <inheritdoc cref="AuthenticateAsClient(SslClientAuthenticationOptions)" path="/exception"/>
    public new Task AuthenticateAsServerAsync(
        ServerOptionsSelectionCallback optionsCallback, object? state, CancellationToken cancellationToken = default)
    {
        return optionsCallback is null
            ? base.AuthenticateAsServerAsync(optionsCallback!, state, cancellationToken)
            : ShakeHandsAsync();

        async Task ShakeHandsAsync()
        {
            Task handshake = TryPrepare(optionsCallback, state, out TlsHandshake? own)
                ? RunAsync(own, cancellationToken)
                : base.AuthenticateAsServerAsync(optionsCallback, state, cancellationToken);
            await handshake.ConfigureAwait(false);
        }
    }

    /// <summary>Before the handshake: it will be the base class's, for this reason.</summary>
    internal void StayManaged(KtlsFallbackReason reason) => _stays = reason;

    private bool TryPrepare(SslClientAuthenticationOptions options, [NotNullWhen(true)] out TlsHandshake? handshake)
    {
        ArgumentNullException.ThrowIfNull(options);
        return TryPrepare(
            isServer: false,
            (KernelRequest kernel, out HandshakeSettings? settings) =>
                ClientHandshakeOptions.TryCreate(options, _callbacks, kernel, out settings),
            out handshake);
    }

    private bool TryPrepare(SslServerAuthenticationOptions options, [NotNullWhen(true)] out TlsHandshake? handshake)
    {
        ArgumentNullException.ThrowIfNull(options);
        return TryPrepare(
            isServer: true,
            (KernelRequest kernel, out HandshakeSettings? settings) =>
                ServerHandshakeOptions.TryCreate(options, _callbacks, kernel, out settings),
            out handshake);
    }

    private bool TryPrepare(
        ServerOptionsSelectionCallback callback, object? state, [NotNullWhen(true)] out TlsHandshake? handshake) =>
        TryPrepare(
            isServer: true,
            (KernelRequest kernel, out HandshakeSettings? settings) =>
            {
                settings = ServerHandshakeOptions.Selecting(callback, state, _callbacks, kernel);
                return KtlsFallbackReason.None;
            },
            out handshake);

    private delegate KtlsFallbackReason SettingsFactory(KernelRequest kernel, out HandshakeSettings? settings);

    /// <summary>False: the base class shakes hands, and the reason is kept.</summary>
    private bool TryPrepare(bool isServer, SettingsFactory create, [NotNullWhen(true)] out TlsHandshake? handshake)
    {
        handshake = null;
        ThrowIfHandshakeStarted();

        (Engine engine, KtlsFallbackReason reason) = ChooseEngine(_options);
        if (reason == KtlsFallbackReason.None)
        {
            reason = _stays;
        }

        if (reason == KtlsFallbackReason.None)
        {
            reason = SocketEligibility.TryGetSocket(InnerStream, _namedSocket, out Socket? socket);
            HandshakeSettings? settings = null;
            if (reason == KtlsFallbackReason.None)
            {
                KernelRequest kernel = engine == Engine.Kernel
                    ? new KernelRequest(KtlsFallbackReason.None, _options.Directions)
                    : KernelRequest.Nothing(KtlsFallbackReason.DirectOpenSsl);
                reason = create(kernel, out settings);
            }

            if (reason == KtlsFallbackReason.None &&
                TlsContexts.TryGet(settings!.Context, out reason) is { } context)
            {
                ClaimHandshake();
                _isServer = isServer;
                handshake = new TlsHandshake(socket!, context, settings, this, _options);
                return true;
            }
        }

        FallBack(isServer, reason);
        return false;
    }

    /// <summary>What is asked for, and whether this platform has it. Reason is None unless the engine is Managed.</summary>
    internal static (Engine Engine, KtlsFallbackReason Reason) ChooseEngine(KtlsOptions options)
    {
        (Engine engine, KtlsFallbackReason reason) =
            EngineChoice.Decide(options.Mode, options.DirectOpenSsl, Toggles.Kernel, Toggles.DirectOpenSsl);
        if (engine == Engine.Managed)
        {
            return (engine, reason);
        }

        if (options.Mode == KtlsMode.Required && engine == Engine.DirectOpenSsl)
        {
            return (Engine.Managed, KtlsFallbackReason.DirectOpenSsl);
        }

        Platform platform = Platform.Current;
        reason = engine == Engine.Kernel ? platform.KernelReason : platform.DirectReason;
        return (reason == KtlsFallbackReason.None ? engine : Engine.Managed, reason);
    }

    private void FallBack(bool isServer, KtlsFallbackReason reason)
    {
        _managedReason = reason;
        if (_options.Mode == KtlsMode.Required)
        {
            throw NotAvailable(reason);
        }

        if (!KtlsEventSource.IsChoice(reason))
        {
            KtlsEventSource.Log.Fallback(isServer, reason, Platform.KnownDetail);
            KtlsMeter.Fallback(isServer, KtlsOffload.Managed(reason));
        }
    }

    private static KtlsNotAvailableException NotAvailable(KtlsFallbackReason reason) =>
        new(reason, ($"Kernel TLS is required for this connection and not to be had: {reason}. See KtlsFallbackReason for what "
            + $"to do, or use KtlsMode.Preferred to go on without it. {Platform.KnownDetail}").TrimEnd());

    /// <summary>
    /// Before any thought of falling back: the base class knows nothing of a handshake on OpenSSL, and would start its own in
    /// the middle of the connection.
    /// </summary>
    private void ThrowIfHandshakeStarted()
    {
        _handshakeFailure?.Throw();
        ObjectDisposedException.ThrowIf(_disposed, this);
        if (Volatile.Read(ref _handshakeStarted) != 0)
        {
            throw AlreadyAuthenticated();
        }
    }

    private void ClaimHandshake()
    {
        if (Interlocked.Exchange(ref _handshakeStarted, 1) != 0 || base.IsAuthenticated)
        {
            throw AlreadyAuthenticated();
        }
    }

    private static InvalidOperationException AlreadyAuthenticated() =>
        new("This stream has already been authenticated, or is being authenticated.");

    private async Task RunAsync(TlsHandshake handshake, CancellationToken cancellationToken)
    {
        using (handshake)
        {
            HandshakeTelemetry telemetry = HandshakeTelemetry.Start(handshake.IsServer, handshake.TargetHost);
            try
            {
                Adopt(await handshake.RunAsync(cancellationToken).ConfigureAwait(false), telemetry);
            }
            catch (Exception e)
            {
                _alertedSocket = handshake.AlertedSocket;
                Fail(e, telemetry).Throw();
            }
        }
    }

    private void Run(TlsHandshake handshake)
    {
        using (handshake)
        {
            HandshakeTelemetry telemetry = HandshakeTelemetry.Start(handshake.IsServer, handshake.TargetHost);
            try
            {
                Adopt(handshake.Run(), telemetry);
            }
            catch (Exception e)
            {
                _alertedSocket = handshake.AlertedSocket;
                Fail(e, telemetry).Throw();
            }
        }
    }

    private void Adopt(TlsSession session, in HandshakeTelemetry telemetry)
    {
        if (_options.Mode == KtlsMode.Required && WhyIncomplete(session.Planned) is var missing && missing != KtlsFallbackReason.None)
        {
            session.Close();
            session.Dispose();
            throw NotAvailable(missing);
        }

        RuntimeInternals.Publish(this, session.Protocol, session.CipherSuite, session.ApplicationProtocol, inHandshake: false);

        // A client's name was published before the handshake.
        if (session.Settings.IsServer)
        {
            RuntimeInternals.PublishTargetHost(this, session.TargetHost);
        }

        // Either sees the other: this, that the stream was disposed, or who disposes it, the session.
        Interlocked.Exchange(ref _session, session);
        if (_disposed)
        {
            session.Dispose();
            throw new ObjectDisposedException(GetType().FullName);
        }

        telemetry.Completed(session);
    }

    /// <summary>Why a direction that was asked for is not in the kernel.</summary>
    private static KtlsFallbackReason WhyIncomplete(in KtlsOffload offload) =>
        offload.SendFallbackReason is not (KtlsFallbackReason.None or KtlsFallbackReason.DirectionNotAsked)
            ? offload.SendFallbackReason
            : offload.ReceiveFallbackReason == KtlsFallbackReason.DirectionNotAsked
                ? KtlsFallbackReason.None
                : offload.ReceiveFallbackReason;

    /// <summary>A handshake that failed leaves a stream that throws the same failure from then on.</summary>
    private ExceptionDispatchInfo Fail(Exception failure, in HandshakeTelemetry telemetry)
    {
        Exception outcome = _disposed && failure is not ObjectDisposedException
            ? new ObjectDisposedException(GetType().FullName, failure)
            : failure;
        _handshakeFailure = ExceptionDispatchInfo.Capture(outcome);
        telemetry.Failed(outcome);
        return _handshakeFailure;
    }
}

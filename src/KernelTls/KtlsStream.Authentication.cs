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
    private const string BothCallbacks =
        "A RemoteCertificateValidationCallback was given both to the constructor and in the options: give one of them.";

    private int _handshakeStarted;
    private ExceptionDispatchInfo? _handshakeFailure;

    /// <summary>Shakes hands as a client, blocking; the inner stream's timeouts limit each wait.</summary>
    /// <param name="sslClientAuthenticationOptions">The options; see <see cref="KtlsFallbackReason"/> for those that stay with the base class.</param>
    /// <exception cref="AuthenticationException">The handshake failed.</exception>
    /// <exception cref="KtlsNotAvailableException">Kernel TLS is required and not to be had.</exception>
    /// <exception cref="IOException">The transport failed or ended.</exception>
    public new void AuthenticateAsClient(SslClientAuthenticationOptions sslClientAuthenticationOptions)
    {
        if (TryPrepare(sslClientAuthenticationOptions, out TlsHandshake? handshake, out bool kernel))
        {
            Run(handshake, kernel);
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
            Task handshake = TryPrepare(sslClientAuthenticationOptions, out TlsHandshake? own, out bool kernel)
                ? RunAsync(own, kernel, cancellationToken)
                : base.AuthenticateAsClientAsync(sslClientAuthenticationOptions, cancellationToken);
            await handshake.ConfigureAwait(false);
        }
    }

    /// <summary>Shakes hands as a server, blocking; the inner stream's timeouts limit each wait.</summary>
    /// <param name="sslServerAuthenticationOptions">The options; see <see cref="KtlsFallbackReason"/> for those that stay with the base class.</param>
    /// <inheritdoc cref="AuthenticateAsClient(SslClientAuthenticationOptions)" path="/exception"/>
    public new void AuthenticateAsServer(SslServerAuthenticationOptions sslServerAuthenticationOptions)
    {
        if (TryPrepare(sslServerAuthenticationOptions, out TlsHandshake? handshake, out bool kernel))
        {
            Run(handshake, kernel);
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
            Task handshake = TryPrepare(sslServerAuthenticationOptions, out TlsHandshake? own, out bool kernel)
                ? RunAsync(own, kernel, cancellationToken)
                : base.AuthenticateAsServerAsync(sslServerAuthenticationOptions, cancellationToken);
            await handshake.ConfigureAwait(false);
        }
    }

    /// <summary>
    /// Shakes hands as a server whose options are chosen when the ClientHello is known. Stays with the base class
    /// (<see cref="KtlsFallbackReason.ServerOptionsSelection"/>).
    /// </summary>
    /// <param name="optionsCallback">Chooses the options.</param>
    /// <param name="state">Passed to the callback.</param>
    /// <param name="cancellationToken">Ends the handshake.</param>
    /// <inheritdoc cref="AuthenticateAsClient(SslClientAuthenticationOptions)" path="/exception"/>
    public new Task AuthenticateAsServerAsync(
        ServerOptionsSelectionCallback optionsCallback, object? state, CancellationToken cancellationToken = default)
    {
        ThrowIfHandshakeStarted();
        (Engine engine, KtlsFallbackReason reason) = ChooseEngine();
        FallBack(isServer: true, engine == Engine.Managed ? reason : KtlsFallbackReason.ServerOptionsSelection);
        return base.AuthenticateAsServerAsync(optionsCallback, state, cancellationToken);
    }

    private bool TryPrepare(
        SslClientAuthenticationOptions options, [NotNullWhen(true)] out TlsHandshake? handshake, out bool kernel)
    {
        ArgumentNullException.ThrowIfNull(options);
        return TryPrepare(
            isServer: false,
            (bool enableKtls, out HandshakeSettings? settings) =>
            {
                settings = null;
                if (_selectionCallback is not null)
                {
                    return KtlsFallbackReason.ClientCertificateSelection;
                }

                ThrowIfBoth(options.RemoteCertificateValidationCallback);
                return ClientHandshakeOptions.TryCreate(options, _validationCallback, enableKtls, out settings);
            },
            out handshake,
            out kernel);
    }

    private bool TryPrepare(
        SslServerAuthenticationOptions options, [NotNullWhen(true)] out TlsHandshake? handshake, out bool kernel)
    {
        ArgumentNullException.ThrowIfNull(options);
        return TryPrepare(
            isServer: true,
            (bool enableKtls, out HandshakeSettings? settings) =>
            {
                settings = null;
                if (_selectionCallback is not null)
                {
                    return KtlsFallbackReason.ServerCertificateSelection;
                }

                ThrowIfBoth(options.RemoteCertificateValidationCallback);
                return ServerHandshakeOptions.TryCreate(options, _validationCallback, enableKtls, out settings);
            },
            out handshake,
            out kernel);
    }

    private delegate KtlsFallbackReason SettingsFactory(bool enableKtls, out HandshakeSettings? settings);

    /// <summary>False: the base class shakes hands, and the reason is kept.</summary>
    private bool TryPrepare(
        bool isServer, SettingsFactory create, [NotNullWhen(true)] out TlsHandshake? handshake, out bool kernel)
    {
        handshake = null;
        ThrowIfHandshakeStarted();

        (Engine engine, KtlsFallbackReason reason) = ChooseEngine();
        kernel = engine == Engine.Kernel;
        if (reason == KtlsFallbackReason.None)
        {
            reason = SocketEligibility.TryGetSocket(InnerStream, out Socket? socket);
            HandshakeSettings? settings = null;
            if (reason == KtlsFallbackReason.None)
            {
                reason = create(kernel, out settings);
            }

            if (reason == KtlsFallbackReason.None &&
                TlsContexts.TryGet(settings!.Context, out reason) is { } context)
            {
                ClaimHandshake();
                handshake = new TlsHandshake(socket!, context, settings, this);
                return true;
            }
        }

        FallBack(isServer, reason);
        return false;
    }

    /// <summary>What is asked for, and whether this platform has it. Reason is None unless the engine is Managed.</summary>
    private (Engine Engine, KtlsFallbackReason Reason) ChooseEngine()
    {
        (Engine engine, KtlsFallbackReason reason) =
            EngineChoice.Decide(_options.Mode, _options.DirectOpenSsl, Toggles.Kernel, Toggles.DirectOpenSsl);
        if (engine == Engine.Managed)
        {
            return (engine, reason);
        }

        if (_options.Mode == KtlsMode.Required && engine == Engine.DirectOpenSsl)
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

        if (reason is not (KtlsFallbackReason.NotEnabled or KtlsFallbackReason.DisabledByMode))
        {
            KtlsEventSource.Log.Fallback(isServer, reason, Platform.KnownDetail);
        }
    }

    private static KtlsNotAvailableException NotAvailable(KtlsFallbackReason reason) =>
        new(reason, $"Kernel TLS is required for this connection and not to be had: {reason}. {Platform.KnownDetail} "
            + "See KtlsFallbackReason for what to do, or use KtlsMode.Preferred to go on without it.");

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

    private void ThrowIfBoth(RemoteCertificateValidationCallback? callback)
    {
        if (callback is not null && _validationCallback is not null && callback != _validationCallback)
        {
            throw new InvalidOperationException(BothCallbacks);
        }
    }

    private async Task RunAsync(TlsHandshake handshake, bool kernel, CancellationToken cancellationToken)
    {
        using (handshake)
        {
            try
            {
                Adopt(await handshake.RunAsync(kernel, cancellationToken).ConfigureAwait(false));
            }
            catch (Exception e)
            {
                Fail(e, handshake.IsServer).Throw();
            }
        }
    }

    private void Run(TlsHandshake handshake, bool kernel)
    {
        using (handshake)
        {
            try
            {
                Adopt(handshake.Run(kernel));
            }
            catch (Exception e)
            {
                Fail(e, handshake.IsServer).Throw();
            }
        }
    }

    private void Adopt(TlsSession session)
    {
        if (_options.Mode == KtlsMode.Required && !session.Offload.IsComplete)
        {
            KtlsOffload offload = session.Offload;
            session.Close();
            session.Dispose();
            throw NotAvailable(offload.SendFallbackReason != KtlsFallbackReason.None
                ? offload.SendFallbackReason
                : offload.ReceiveFallbackReason);
        }

        session.Strengths = RuntimeInternals.Publish(
            this, session.Protocol, session.CipherSuite, session.ApplicationProtocol, session.TargetHost);
        _session = session;
        if (_disposed)
        {
            session.Dispose();
            throw new ObjectDisposedException(GetType().FullName);
        }

        if (KtlsEventSource.Log.IsEnabled())
        {
            KtlsEventSource.Log.HandshakeCompleted(
                session.Settings.IsServer, session.Protocol.ToString(), session.CipherSuite.ToString(), session.Offload);
        }
    }

    /// <summary>A handshake that failed leaves a stream that throws the same failure from then on.</summary>
    private ExceptionDispatchInfo Fail(Exception failure, bool isServer)
    {
        Exception outcome = _disposed && failure is not ObjectDisposedException
            ? new ObjectDisposedException(GetType().FullName, failure)
            : failure;
        _handshakeFailure = ExceptionDispatchInfo.Capture(outcome);
        KtlsEventSource.Log.HandshakeFailed(isServer, outcome);
        return _handshakeFailure;
    }
}

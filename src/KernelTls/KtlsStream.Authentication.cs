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
using KernelTls.Weaving;

namespace KernelTls;

// The options-based handshakes. The engine that performs the handshake is chosen here, once, before the first byte.
public partial class KtlsStream
{
    private int _handshakeStarted;
    private bool? _isServer;
    private KtlsFallbackReason _managedByCaller;
    private ExceptionDispatchInfo? _handshakeFailure;
    private bool _peerRefused;
    private Socket? _lingeringSocket;
    private bool _hasFirstRecord;

    /// <summary>
    /// Performs the TLS handshake as a client and blocks until it completes. The inner stream's timeouts limit each
    /// wait.
    /// </summary>
    /// <param name="sslClientAuthenticationOptions">
    /// The authentication options. See <see cref="KtlsFallbackReason"/> for the options that only the base class
    /// supports.
    /// </param>
    /// <exception cref="AuthenticationException">The handshake failed.</exception>
    /// <exception cref="KtlsNotAvailableException">Kernel TLS is required and not available.</exception>
    /// <exception cref="IOException">The transport failed or ended.</exception>
    public new void AuthenticateAsClient(SslClientAuthenticationOptions sslClientAuthenticationOptions)
    {
        if (TryPrepareClient(sslClientAuthenticationOptions, out TlsHandshake? handshake))
        {
            handshake.Run();
        }
        else
        {
            base.AuthenticateAsClient(sslClientAuthenticationOptions);
        }
    }

    /// <summary>Performs the TLS handshake as a client.</summary>
    /// <remarks>If the handshake is canceled, the stream cannot be used any more.</remarks>
    /// <param name="sslClientAuthenticationOptions">
    /// The authentication options. See <see cref="KtlsFallbackReason"/> for the options that only the base class
    /// supports.
    /// </param>
    /// <param name="cancellationToken">The token to monitor for cancellation requests.</param>
    /// <returns>A task that represents the handshake.</returns>
    /// <inheritdoc cref="AuthenticateAsClient(SslClientAuthenticationOptions)" path="/exception"/>
    public new Task AuthenticateAsClientAsync(
        SslClientAuthenticationOptions sslClientAuthenticationOptions, CancellationToken cancellationToken = default)
    {
        ArgumentNullException.ThrowIfNull(sslClientAuthenticationOptions);
        try
        {
            return TryPrepareClient(sslClientAuthenticationOptions, out TlsHandshake? handshake)
                ? handshake.RunAsync(cancellationToken)
                : base.AuthenticateAsClientAsync(sslClientAuthenticationOptions, cancellationToken);
        }
        catch (Exception e)
        {
            return Task.FromException(e);
        }
    }

    /// <summary>
    /// Performs the TLS handshake as a server and blocks until it completes. The inner stream's timeouts limit each
    /// wait.
    /// </summary>
    /// <param name="sslServerAuthenticationOptions">
    /// The authentication options. See <see cref="KtlsFallbackReason"/> for the options that only the base class
    /// supports.
    /// </param>
    /// <inheritdoc cref="AuthenticateAsClient(SslClientAuthenticationOptions)" path="/exception"/>
    public new void AuthenticateAsServer(SslServerAuthenticationOptions sslServerAuthenticationOptions)
    {
        if (TryPrepareServer(sslServerAuthenticationOptions, out TlsHandshake? handshake))
        {
            handshake.Run();
        }
        else
        {
            base.AuthenticateAsServer(sslServerAuthenticationOptions);
        }
    }

    /// <summary>Performs the TLS handshake as a server.</summary>
    /// <remarks>If the handshake is canceled, the stream cannot be used any more.</remarks>
    /// <param name="sslServerAuthenticationOptions">
    /// The authentication options. See <see cref="KtlsFallbackReason"/> for the options that only the base class
    /// supports.
    /// </param>
    /// <param name="cancellationToken">The token to monitor for cancellation requests.</param>
    /// <returns>A task that represents the handshake.</returns>
    /// <inheritdoc cref="AuthenticateAsClient(SslClientAuthenticationOptions)" path="/exception"/>
    public new Task AuthenticateAsServerAsync(
        SslServerAuthenticationOptions sslServerAuthenticationOptions, CancellationToken cancellationToken = default)
    {
        ArgumentNullException.ThrowIfNull(sslServerAuthenticationOptions);
        try
        {
            return TryPrepareServer(sslServerAuthenticationOptions, out TlsHandshake? handshake)
                ? handshake.RunAsync(cancellationToken)
                : base.AuthenticateAsServerAsync(sslServerAuthenticationOptions, cancellationToken);
        }
        catch (Exception e)
        {
            return Task.FromException(e);
        }
    }

    /// <summary>
    /// Performs the TLS handshake as a server whose options are chosen when the ClientHello has been received.
    /// </summary>
    /// <remarks>
    /// The callback's options must not contain any that only the base class supports, because the base class cannot
    /// take over at that point: the handshake then fails with a <see cref="KtlsNotAvailableException"/>. If the
    /// handshake is canceled, the stream cannot be used any more.
    /// </remarks>
    /// <param name="optionsCallback">The callback that chooses the options.</param>
    /// <param name="state">The state to pass to the callback.</param>
    /// <param name="cancellationToken">The token to monitor for cancellation requests.</param>
    /// <returns>A task that represents the handshake.</returns>
    /// <inheritdoc cref="AuthenticateAsClient(SslClientAuthenticationOptions)" path="/exception"/>
    public new Task AuthenticateAsServerAsync(
        ServerOptionsSelectionCallback optionsCallback, object? state, CancellationToken cancellationToken = default)
    {
        try
        {
            return optionsCallback is not null && TryPrepareSelection(optionsCallback, state, out TlsHandshake? handshake)
                ? handshake.RunAsync(cancellationToken)
                : base.AuthenticateAsServerAsync(optionsCallback!, state, cancellationToken);
        }
        catch (Exception e) when (optionsCallback is not null)
        {
            return Task.FromException(e);
        }
    }

    /// <summary>
    /// Makes the base class perform the handshake, for the specified reason. Call it before the handshake.
    /// </summary>
    internal void DisableKernelTls(KtlsFallbackReason reason) => _managedByCaller = reason;

    /// <summary>
    /// Records that the caller has waited for the client's first record by <see cref="FirstRecord.WaitAsync"/>. Call it before the
    /// handshake.
    /// </summary>
    internal void SkipWaitForFirstRecord() => _hasFirstRecord = true;

    private bool TryPrepareClient(SslClientAuthenticationOptions options, [NotNullWhen(true)] out TlsHandshake? handshake)
    {
        ArgumentNullException.ThrowIfNull(options);
        return TryCreateHandshake(
            isServer: false,
            (KernelRequest kernel, out HandshakeSettings? settings) =>
            {
                // A callback that selects the certificate may read it.
                RuntimeInternals.PublishTargetHost(this, options.TargetHost ?? "");
                return ClientHandshakeOptions.TryCreate(options, _callbacks, kernel, out settings);
            },
            out handshake);
    }

    private bool TryPrepareServer(SslServerAuthenticationOptions options, [NotNullWhen(true)] out TlsHandshake? handshake)
    {
        ArgumentNullException.ThrowIfNull(options);
        return TryCreateHandshake(
            isServer: true,
            (KernelRequest kernel, out HandshakeSettings? settings) =>
                ServerHandshakeOptions.TryCreate(options, _callbacks, kernel, out settings),
            out handshake);
    }

    private bool TryPrepareSelection(
        ServerOptionsSelectionCallback callback, object? state, [NotNullWhen(true)] out TlsHandshake? handshake) =>
        TryCreateHandshake(
            isServer: true,
            (KernelRequest kernel, out HandshakeSettings? settings) =>
            {
                settings = ServerHandshakeOptions.Selecting(callback, state, _callbacks, kernel);
                return KtlsFallbackReason.None;
            },
            out handshake);

    private delegate KtlsFallbackReason SettingsFactory(KernelRequest kernel, out HandshakeSettings? settings);

    /// <summary>Returns false if the base class performs the handshake, and stores the reason.</summary>
    private bool TryCreateHandshake(bool isServer, SettingsFactory create, [NotNullWhen(true)] out TlsHandshake? handshake)
    {
        handshake = null;
        ThrowIfHandshakeStarted();

        EngineChoice choice = ChooseEngine(_options).Where(_managedByCaller, _managedByCaller);
        Socket? socket = null;
        if (choice.Engine != Engine.Managed)
        {
            Socket? named = _namedSocket ?? (_options.Library.Length != 0 ? KnownWrapper.SocketOf(InnerStream) : null);
            KtlsFallbackReason unfit = SocketEligibility.TryGetSocket(InnerStream, named, out socket);
            choice = choice.Where(unfit, SocketEligibility.OpenSslReasonOf(unfit));
        }

        KtlsFallbackReason reason = choice.Reason;
        if (reason == KtlsFallbackReason.None)
        {
            KernelRequest kernel = choice.Engine == Engine.Kernel
                ? new KernelRequest(KtlsFallbackReason.None, _options.Directions)
                : KernelRequest.Nothing(choice.KernelReason);
            reason = create(kernel, out HandshakeSettings? settings);
            if (reason == KtlsFallbackReason.None &&
                TlsContexts.TryGet(settings!.Context, out reason) is { } context)
            {
                ClaimHandshake();
                _isServer = isServer;
                handshake = new TlsHandshake(socket!, context, settings, this, _options) { HasFirstRecord = _hasFirstRecord };
                return true;
            }
        }

        FallBack(isServer, choice.Where(reason, reason));
        return false;
    }

    /// <summary>Chooses the engine from the options, the process-wide switches and the platform.</summary>
    internal static EngineChoice ChooseEngine(KtlsOptions options)
    {
        StockHandshakeMonitor.Start();
        EngineChoice choice = EngineChoice.Requested(options.Mode, options.Fallback, Toggles.Kernel, Toggles.DirectOpenSsl);
        if (options.AllowSocketReuse)
        {
            choice = choice.Where(KtlsFallbackReason.SocketReused, KtlsFallbackReason.None);
        }

        if (choice.Engine == Engine.Managed)
        {
            return choice;
        }

        Platform platform = Platform.Current;
        return choice.Where(platform.KernelReason, platform.DirectReason);
    }

    private void FallBack(bool isServer, EngineChoice choice)
    {
        _managed = choice;
        string detail = DetailOf(choice);
        if (_options.Mode == KtlsMode.Required)
        {
            throw NotAvailable(choice.Reason, detail);
        }

        StockHandshakeMonitor.ExcludeNext();
        if (!KtlsEventSource.IsChoice(choice.Reason))
        {
            KtlsEventSource.Log.Fallback(isServer, choice.Reason, detail, _options.Library);
            KtlsMeter.Fallback(isServer, KtlsOffload.Managed(choice));
            ProcessStatus.Fallbacks.Add(new FallbackKind(
                isServer,
                choice.Reason,
                detail,
                _options.Library,
                _options.Library.Length != 0 && IsStreamInTheWay(choice) ? InnerStreamName() : ""));
        }
    }

    /// <summary>Returns details of the reasons: what the platform lacks, and the stream that is in the way.</summary>
    private string DetailOf(EngineChoice choice)
    {
        string detail = choice.AppendTo(choice.Reason == KtlsFallbackReason.NotSocketStream ? "" : choice.Detail);
        return IsStreamInTheWay(choice) ? $"{detail} The inner stream is a {InnerStreamName()}.".TrimStart() : detail;
    }

    /// <summary>Returns the name of the inner stream's type, without the arguments of a generic type, which are long.</summary>
    private string InnerStreamName()
    {
        Type type = InnerStream.GetType();
        type = type.IsConstructedGenericType ? type.GetGenericTypeDefinition() : type;
        return type.FullName ?? type.Name;
    }

    private static bool IsStreamInTheWay(EngineChoice choice) =>
        choice.Reason == KtlsFallbackReason.NotSocketStream || choice.OpenSslReason == KtlsFallbackReason.NotSocketStream;

    private static KtlsNotAvailableException NotAvailable(KtlsFallbackReason reason, string detail) =>
        new(reason, ($"Kernel TLS is required for this connection but not available: {reason}. See KtlsFallbackReason for how to "
            + $"fix it, or use KtlsMode.Preferred to continue without kernel TLS. {detail}").TrimEnd());

    /// <summary>
    /// Throws if a handshake has started. Call this before falling back: the base class does not know about a handshake
    /// on OpenSSL and would start its own in the middle of the connection.
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
        if (Interlocked.Exchange(ref _handshakeStarted, 1) != 0 || base.IsAuthenticated || !RuntimeInternals.TryClaimHandshake(this))
        {
            throw AlreadyAuthenticated();
        }
    }

    private static InvalidOperationException AlreadyAuthenticated() =>
        new("This stream has already been authenticated, or is being authenticated.");
}

using KernelTls.Diagnostics;
using KernelTls.Offload;
using Microsoft.Extensions.Logging;
using Microsoft.Extensions.Options;

namespace KernelTls.AspNetCore;

/// <summary>
/// Decides once, when the server starts, whether its https endpoints use the transport.
/// </summary>
/// <remarks>If they do not, Kestrel is left unchanged, except for endpoints with their own options.</remarks>
internal sealed class KernelTlsServer
{
    /// <summary>The name of the options that apply to all of Kestrel's connections.</summary>
    public const string OptionsName = "KernelTls.AspNetCore";

    private readonly IOptionsFactory<KtlsOptions> _factory;
    private readonly KestrelSupport _kestrel;
    private readonly ILogger<KernelTlsServer> _logger;
    private readonly Lazy<bool> _active;
    private volatile bool _hasServed;

    public KernelTlsServer(IOptionsFactory<KtlsOptions> factory, KestrelSupport kestrel, ILogger<KernelTlsServer> logger)
    {
        _factory = factory;
        _kestrel = kestrel;
        _logger = logger;
        Options = factory.Create(OptionsName);
        _active = new Lazy<bool>(Decide);
    }

    public KtlsOptions Options { get; }

    /// <summary>Gets a value that indicates whether the server's https endpoints use the transport.</summary>
    /// <exception cref="KtlsNotAvailableException">Kernel TLS is required and not available.</exception>
    public bool IsActive => _active.Value;

    /// <summary>
    /// Gets the reason why the server cannot use kernel TLS. <see cref="KtlsFallbackReason.None"/> if it can, or if
    /// kernel TLS is switched off.
    /// </summary>
    /// <inheritdoc cref="IsActive" path="/exception"/>
    public KtlsFallbackReason StockReason => !IsActive && GetFallbackReason(Options) is var reason && !IsSwitchedOff(reason) ? reason : KtlsFallbackReason.None;

    /// <summary>
    /// Gets a value that indicates whether the transport accepts connections: for all endpoints, or for one with its
    /// own options, which is built by then.
    /// </summary>
    /// <inheritdoc cref="IsActive" path="/exception"/>
    public bool Listens => _hasServed || IsActive;

    /// <summary>Returns the engine of connections with these options. The base class stands for Kestrel's HTTPS middleware.</summary>
    public EngineChoice Choose(KtlsOptions options)
    {
        EngineChoice choice = KtlsStream.ChooseEngine(options);
        return choice.Engine != Engine.Managed && _kestrel.Reason != KtlsFallbackReason.None
            ? choice.Where(_kestrel.Reason, _kestrel.Reason)
            : choice;
    }

    /// <summary>
    /// Returns the reason why these options leave connections to Kestrel's HTTPS middleware, or None.
    /// </summary>
    public KtlsFallbackReason GetFallbackReason(KtlsOptions options) => Choose(options).Reason;

    /// <summary>Creates a copy of the server's options, for an endpoint.</summary>
    public KtlsOptions CreateOptions() => _factory.Create(OptionsName);

    /// <summary>Creates a copy of the server's options, with kernel TLS requested, for an endpoint.</summary>
    public KtlsOptions CreateRequestedOptions()
    {
        KtlsOptions options = CreateOptions();
        options.Mode = options.Mode == KtlsMode.Required ? KtlsMode.Required : KtlsMode.Preferred;
        return options;
    }

    public void MarkServed() => _hasServed = true;

    /// <summary>Reports that an endpoint, or a connection accepted there, uses Kestrel's HTTPS middleware.</summary>
    /// <inheritdoc cref="ThrowIfRequired" path="/exception"/>
    public void Refuse(string endpoint, KtlsFallbackReason reason, KtlsOptions options)
    {
        ThrowIfRequired(endpoint, reason, options);
        if (IsSwitchedOff(reason))
        {
            _logger.EndpointSwitchedOff(endpoint, reason);
        }
        else
        {
            Report(endpoint, reason);
        }
    }

    /// <summary>Throws if the options do not permit that an endpoint uses Kestrel's HTTPS middleware.</summary>
    /// <exception cref="KtlsNotAvailableException">Kernel TLS is required.</exception>
    public static void ThrowIfRequired(string endpoint, KtlsFallbackReason reason, KtlsOptions options)
    {
        if (options.Mode == KtlsMode.Required)
        {
            throw new KtlsNotAvailableException(
                reason,
                $"Kernel TLS is required but not available for {endpoint}: {reason}. See KtlsFallbackReason for how to fix it, or use "
                + "KtlsMode.Preferred.");
        }
    }

    /// <summary>Does the same as <see cref="Refuse"/>, when it is too late to refuse.</summary>
    public void Report(string endpoint, KtlsFallbackReason reason)
    {
        KtlsEventSource.Log.Fallback(isServer: true, reason, endpoint);
        _logger.EndpointStaysStock(endpoint, reason, Advice.On(reason));
    }

    /// <summary>Returns whether kernel TLS is not requested, so that nothing is wrong.</summary>
    public static bool IsSwitchedOff(KtlsFallbackReason reason) =>
        reason is KtlsFallbackReason.NotEnabled or KtlsFallbackReason.DisabledByMode or KtlsFallbackReason.DisabledByToggle;

    /// <summary>Returns how to change that these options leave connections to Kestrel's HTTPS middleware, or to OpenSSL, and details.</summary>
    public string RemedyOf(EngineChoice choice)
    {
        KtlsFallbackReason reason = choice.Engine == Engine.Managed ? choice.Reason : choice.KernelReason;
        string detail = IsAboutKestrel(reason) ? _kestrel.Detail : Platform.DetailOf(reason);
        return $"{Advice.On(reason)} {(choice.Engine == Engine.Managed ? choice.AppendTo(detail) : detail)}".TrimEnd();
    }

    private static bool IsAboutKestrel(KtlsFallbackReason reason) =>
        reason is KtlsFallbackReason.KestrelNotSupported or KtlsFallbackReason.KestrelChanged;

    private bool Decide()
    {
        EngineChoice choice = Choose(Options);
        KtlsFallbackReason reason = choice.Reason;
        if (reason == KtlsFallbackReason.None)
        {
            return true;
        }

        string detail = choice.AppendTo(IsAboutKestrel(reason) ? _kestrel.Detail : choice.Detail);
        if (Options.Mode == KtlsMode.Required)
        {
            throw new KtlsNotAvailableException(
                reason,
                ($"Kernel TLS is required for this server but not available: {reason}. See KtlsFallbackReason for how to fix it, "
                + $"or use KtlsMode.Preferred. {detail}").TrimEnd());
        }

        if (IsSwitchedOff(reason))
        {
            _logger.SwitchedOff(reason);
        }
        else
        {
            KtlsEventSource.Log.Fallback(isServer: true, reason, detail);
        }

        return false;
    }
}

using KernelTls.Diagnostics;
using KernelTls.Offload;
using Microsoft.Extensions.Logging;
using Microsoft.Extensions.Options;

namespace KernelTls.AspNetCore;

/// <summary>
/// Whether this server's https endpoints go through the transport at all: found out once, at its start, and said once. Where
/// they do not, nothing of Kestrel is touched, but for endpoints with options of their own.
/// </summary>
internal sealed class KernelTlsServer
{
    /// <summary>The name that the options of all of Kestrel's connections have.</summary>
    public const string OptionsName = "KernelTls.AspNetCore";

    private readonly IOptionsFactory<KtlsOptions> _factory;
    private readonly ILogger<KernelTlsServer> _logger;
    private readonly Lazy<bool> _active;
    private volatile bool _hasServed;

    public KernelTlsServer(IOptionsFactory<KtlsOptions> factory, ILogger<KernelTlsServer> logger)
    {
        _factory = factory;
        _logger = logger;
        Options = factory.Create(OptionsName);
        _active = new Lazy<bool>(Decide);
    }

    public KtlsOptions Options { get; }

    /// <exception cref="KtlsNotAvailableException">Kernel TLS is required and not to be had.</exception>
    public bool IsActive => _active.Value;

    /// <summary>Connections go through the transport: all, or those of an endpoint with options of its own, which is built by then.</summary>
    /// <inheritdoc cref="IsActive" path="/exception"/>
    public bool Listens => _hasServed || IsActive;

    /// <summary>Why these options leave connections to the stock TLS; None: they do not.</summary>
    public static KtlsFallbackReason WhyNot(KtlsOptions options)
    {
        (Engine engine, KtlsFallbackReason reason) = KtlsStream.ChooseEngine(options);
        return engine != Engine.Managed && !KestrelInternals.IsAvailable ? KtlsFallbackReason.KestrelNotKnown : reason;
    }

    /// <summary>For an endpoint of its own: the server's, and asking for kernel TLS if those do not.</summary>
    public KtlsOptions CreateOptions()
    {
        KtlsOptions options = _factory.Create(OptionsName);
        options.Mode = options.Mode == KtlsMode.Required ? KtlsMode.Required : KtlsMode.Preferred;
        return options;
    }

    public void NoteServed() => _hasServed = true;

    /// <summary>Says that an endpoint, or what is accepted there, stays with the stock TLS.</summary>
    /// <exception cref="KtlsNotAvailableException">Kernel TLS is required.</exception>
    public void Refuse(string endpoint, KtlsFallbackReason reason, KtlsOptions options)
    {
        if (options.Mode == KtlsMode.Required)
        {
            throw new KtlsNotAvailableException(
                reason,
                $"Kernel TLS is required and cannot serve {endpoint}: {reason}. See KtlsFallbackReason for what to do, or use "
                + "KtlsMode.Preferred.");
        }

        if (IsSwitchedOff(reason))
        {
            _logger.EndpointSwitchedOff(endpoint, reason);
        }
        else
        {
            Report(endpoint, reason);
        }
    }

    /// <summary>As <see cref="Refuse"/>, where it is too late to refuse.</summary>
    public void Report(string endpoint, KtlsFallbackReason reason)
    {
        KtlsEventSource.Log.Fallback(isServer: true, reason, endpoint);
        _logger.EndpointStaysStock(endpoint, reason);
    }

    private bool Decide()
    {
        KtlsFallbackReason reason = WhyNot(Options);
        if (reason == KtlsFallbackReason.None)
        {
            return true;
        }

        string detail = reason == KtlsFallbackReason.KestrelNotKnown ? KestrelInternals.Missing : Platform.KnownDetail;
        if (Options.Mode == KtlsMode.Required)
        {
            throw new KtlsNotAvailableException(
                reason,
                ($"Kernel TLS is required for this server and not to be had: {reason}. See KtlsFallbackReason for what to do, "
                + $"or use KtlsMode.Preferred. {detail}").TrimEnd());
        }

        if (IsSwitchedOff(reason))
        {
            _logger.SwitchedOff(reason);
        }
        else
        {
            KtlsEventSource.Log.Fallback(isServer: true, reason, detail);
            _logger.NotAvailable(reason, detail);
        }

        return false;
    }

    private static bool IsSwitchedOff(KtlsFallbackReason reason) =>
        reason is KtlsFallbackReason.NotEnabled or KtlsFallbackReason.DisabledByMode or KtlsFallbackReason.DisabledByToggle;
}

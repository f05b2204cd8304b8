using KernelTls.Diagnostics;
using KernelTls.Offload;
using Microsoft.Extensions.Logging;
using Microsoft.Extensions.Options;

namespace KernelTls.AspNetCore;

/// <summary>
/// Whether this server's https endpoints go through the transport at all: found out once, at its start, and said once. Where
/// they do not, nothing of Kestrel is touched.
/// </summary>
internal sealed class KernelTlsServer
{
    /// <summary>The name that the options of all of Kestrel's connections have.</summary>
    public const string OptionsName = "KernelTls.AspNetCore";

    private readonly ILogger<KernelTlsServer> _logger;
    private readonly Lazy<bool> _active;

    public KernelTlsServer(IOptionsMonitor<KtlsOptions> options, ILogger<KernelTlsServer> logger)
    {
        _logger = logger;
        Options = options.Get(OptionsName);
        _active = new Lazy<bool>(Decide);
    }

    public KtlsOptions Options { get; }

    /// <exception cref="KtlsNotAvailableException">Kernel TLS is required and not to be had.</exception>
    public bool IsActive => _active.Value;

    /// <summary>Says that an endpoint, or what is accepted there, stays with the stock TLS.</summary>
    /// <exception cref="KtlsNotAvailableException">Kernel TLS is required.</exception>
    public void Refuse(string endpoint, KtlsFallbackReason reason)
    {
        if (Options.Mode == KtlsMode.Required)
        {
            throw new KtlsNotAvailableException(
                reason,
                $"Kernel TLS is required and cannot serve {endpoint}: {reason}. See KtlsFallbackReason for what to do, or use "
                + "KtlsMode.Preferred.");
        }

        Report(endpoint, reason);
    }

    /// <summary>As <see cref="Refuse"/>, where it is too late to refuse.</summary>
    public void Report(string endpoint, KtlsFallbackReason reason)
    {
        KtlsEventSource.Log.Fallback(isServer: true, reason, endpoint);
        _logger.EndpointStaysStock(endpoint, reason);
    }

    private bool Decide()
    {
        (Engine engine, KtlsFallbackReason reason) = KtlsStream.ChooseEngine(Options);
        if (engine != Engine.Managed && !KestrelInternals.IsAvailable)
        {
            reason = KtlsFallbackReason.KestrelNotKnown;
        }

        if (reason == KtlsFallbackReason.None)
        {
            return true;
        }

        string detail = reason == KtlsFallbackReason.KestrelNotKnown ? KestrelInternals.Missing : Platform.KnownDetail;
        if (Options.Mode == KtlsMode.Required)
        {
            throw new KtlsNotAvailableException(
                reason,
                $"Kernel TLS is required for this server and not to be had: {reason}. {detail} See KtlsFallbackReason for what "
                + "to do, or use KtlsMode.Preferred.");
        }

        if (reason is KtlsFallbackReason.NotEnabled or KtlsFallbackReason.DisabledByMode or KtlsFallbackReason.DisabledByToggle)
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
}

using KernelTls.Diagnostics;
using KernelTls.Offload;
using Microsoft.AspNetCore.Hosting.Server;
using Microsoft.AspNetCore.Hosting.Server.Features;
using Microsoft.AspNetCore.Server.Kestrel.Core;
using Microsoft.Extensions.DependencyInjection;
using Microsoft.Extensions.Hosting;
using Microsoft.Extensions.Logging;

namespace KernelTls.AspNetCore;

/// <summary>Logs what each https endpoint uses, and how to change it: once, when the server has bound its endpoints.</summary>
/// <remarks>
/// A start that fails logs nothing of this. Kestrel builds an endpoint on <c>localhost</c> twice, for both versions of IP, under one name.
/// Endpoints that a change of the configuration adds later are logged when they are built.
/// </remarks>
internal sealed class EndpointReport(KernelTlsServer server, IServiceProvider services, ILogger<EndpointReport> logger) : IHostedService, IDisposable
{
    private readonly Lock _lock = new();
    private readonly List<(ListenOptions Endpoint, EngineChoice Choice)> _built = [];
    private readonly HashSet<(string Endpoint, EngineChoice Choice)> _logged = [];
    private readonly IHostApplicationLifetime? _lifetime = services.GetService<IHostApplicationLifetime>();
    private CancellationTokenRegistration _start;
    private bool _isStarted;

    /// <summary>Adds an https endpoint whose pipeline has been built.</summary>
    public void Add(ListenOptions endpoint, EngineChoice choice)
    {
        if (choice.Engine == Engine.Managed && !KernelTlsServer.IsSwitchedOff(choice.Reason))
        {
            KtlsEventSource.Log.Fallback(isServer: true, choice.Reason, endpoint.ToString()!);
        }

        lock (_lock)
        {
            if (_lifetime is null || _isStarted)
            {
                Log(endpoint.ToString()!, choice);
            }
            else
            {
                _built.Add((endpoint, choice));
            }
        }
    }

    public Task StartAsync(CancellationToken cancellationToken)
    {
        _start = _lifetime?.ApplicationStarted.Register(LogAll) ?? default;
        return Task.CompletedTask;
    }

    public Task StopAsync(CancellationToken cancellationToken) => Task.CompletedTask;

    public void Dispose() => _start.Dispose();

    private void LogAll()
    {
        lock (_lock)
        {
            _isStarted = true;
            foreach ((ListenOptions endpoint, EngineChoice choice) in _built)
            {
                Log(endpoint.ToString()!, choice);
            }

            _built.Clear();
            LogOthers([.. services.GetService<IServer>()?.Features.Get<IServerAddressesFeature>()?.Addresses ?? []]);
        }
    }

    /// <summary>Logs the https endpoints that this package did not change, because kernel TLS is not available, or that there are none.</summary>
    private void LogOthers(string[] addresses)
    {
        string[] https = [.. addresses.Where(a => a.StartsWith("https://", StringComparison.OrdinalIgnoreCase))];
        if (server.StockReason != KtlsFallbackReason.None)
        {
            EngineChoice choice = server.Choose(server.Options);
            foreach (string address in https.Where(a => !_logged.Any(l => l.Endpoint == a)))
            {
                Log(address, choice);
            }

            if (https.Length == 0 && _logged.Count == 0)
            {
                logger.NotAvailable(server.StockReason, string.Join(", ", addresses), server.RemedyOf(choice));
            }
        }
        else if (server.IsActive && https.Length == 0 && _logged.Count == 0)
        {
            logger.NoHttpsEndpoint(string.Join(", ", addresses));
        }
    }

    private void Log(string endpoint, EngineChoice choice)
    {
        if (!_logged.Add((endpoint, choice)))
        {
            return;
        }

        string remedy = server.RemedyOf(choice);
        switch (choice.Engine)
        {
            case Engine.Kernel:
                logger.EndpointServed(endpoint);
                ProcessStatus.Endpoints.Add(new EndpointKind(endpoint, "kernel TLS", ""));
                break;
            case Engine.DirectOpenSsl:
                logger.EndpointServedByOpenSsl(endpoint, choice.KernelReason, remedy);
                ProcessStatus.Endpoints.Add(new EndpointKind(endpoint, $"OpenSSL on the socket ({choice.KernelReason})", remedy));
                break;
            default:
                if (KernelTlsServer.IsSwitchedOff(choice.Reason))
                {
                    logger.EndpointSwitchedOff(endpoint, choice.Reason);
                }
                else
                {
                    logger.EndpointStaysStock(endpoint, choice.Reason, remedy);
                }

                ProcessStatus.Endpoints.Add(new EndpointKind(endpoint, $"SslStream ({choice.Reason})", remedy));
                break;
        }
    }
}

using KernelTls.AspNetCore.Tls;
using KernelTls.AspNetCore.Transport;
using Microsoft.AspNetCore.Connections;
using Microsoft.AspNetCore.Server.Kestrel.Core;
using Microsoft.Extensions.Logging;
using Microsoft.Extensions.Options;

namespace KernelTls.AspNetCore;

/// <summary>
/// Puts the TLS middleware directly in front of the stock one of every endpoint, made in code or in the configuration; the
/// stock one passes on connections that have their TLS features already.
/// </summary>
internal sealed class EndpointSetup(KernelTlsServer server, ILoggerFactory loggers) : IPostConfigureOptions<KestrelServerOptions>
{
    private readonly ILogger<TlsMiddleware> _logger = loggers.CreateLogger<TlsMiddleware>();

    public void PostConfigure(string? name, KestrelServerOptions options)
    {
        if (!server.IsActive)
        {
            return;
        }

        foreach (ListenOptions endpoint in KestrelInternals.EndpointsInCode(options))
        {
            StandInFront(endpoint);
        }

        // Endpoints of the configuration and of --urls are yet to be made; they get UseHttps after their defaults.
        Action<ListenOptions> defaults = KestrelInternals.EndpointDefaultsOf(options);
        options.ConfigureEndpointDefaults(endpoint =>
        {
            defaults(endpoint);
            StandInFront(endpoint);
        });
    }

    /// <summary>
    /// Which middleware is the stock one shows when the pipeline is built: a step before each, and one for what is yet to come,
    /// of which those that are not in front of it vanish.
    /// </summary>
    private void StandInFront(ListenOptions endpoint)
    {
        List<Func<ConnectionDelegate, ConnectionDelegate>> middleware = KestrelInternals.MiddlewareOf(endpoint);
        for (int i = middleware.Count; i >= 0; i--)
        {
            middleware.Insert(i, next => Build(endpoint, next));
        }
    }

    private ConnectionDelegate Build(ListenOptions endpoint, ConnectionDelegate next)
    {
        // The step between two of ours, where endpoint defaults were applied before, is the other one's business.
        if (KestrelInternals.HttpsMiddlewareOf(next) is not { } https)
        {
            return next;
        }

        string text = endpoint.ToString()!;
        KtlsFallbackReason reason = EndpointOptions.TryCreate(https, out EndpointOptions? options);
        if (reason == KtlsFallbackReason.None && endpoint.IPEndPoint is null)
        {
            reason = KtlsFallbackReason.NotTcp;
        }

        if (reason != KtlsFallbackReason.None)
        {
            server.Refuse(text, reason);
            return context =>
            {
                DeferredConnection.NoteSeen(context);
                return next(context);
            };
        }

        _logger.EndpointServed(text);
        object? metrics = KestrelInternals.MetricsOf(endpoint.ApplicationServices);
        return new TlsMiddleware(next, options!, server, text, metrics, _logger).OnConnectionAsync;
    }
}

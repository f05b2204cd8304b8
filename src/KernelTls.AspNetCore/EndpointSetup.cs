using System.Runtime.CompilerServices;
using KernelTls.AspNetCore.Internals;
using KernelTls.AspNetCore.Tls;
using KernelTls.AspNetCore.Transport;
using KernelTls.Offload;
using Microsoft.AspNetCore.Connections;
using Microsoft.AspNetCore.Server.Kestrel.Core;
using Microsoft.Extensions.Logging;
using Microsoft.Extensions.Options;

namespace KernelTls.AspNetCore;

/// <summary>
/// Inserts the TLS middleware directly in front of Kestrel's HTTPS middleware of every endpoint, whether created in
/// code or by the configuration. Kestrel's middleware passes on connections that already have TLS features.
/// </summary>
internal sealed class EndpointSetup(KernelTlsServer server, ILoggerFactory loggers) : IPostConfigureOptions<KestrelServerOptions>
{
    private readonly ILogger<TlsMiddleware> _logger = loggers.CreateLogger<TlsMiddleware>();
    private readonly ILogger _httpsLogger = loggers.CreateLogger(KestrelInternals.HttpsCategory);
    private readonly ConditionalWeakTable<ListenOptions, EndpointConfiguration> _configurations = [];

    public void PostConfigure(string? name, KestrelServerOptions options)
    {
        if (!server.IsActive)
        {
            return;
        }

        foreach (ListenOptions endpoint in KestrelInternals.EndpointsOf(options))
        {
            InsertTlsMiddleware(endpoint);
        }

        // The remaining endpoints of the configuration and those of --urls do not exist yet. They get UseHttps after
        // their defaults.
        Action<ListenOptions> defaults = KestrelInternals.EndpointDefaultsOf(options);
        options.ConfigureEndpointDefaults(endpoint =>
        {
            defaults(endpoint);
            InsertTlsMiddleware(endpoint);
        });
    }

    /// <summary>Gives an endpoint its own options, or changes those that an earlier call gave it.</summary>
    /// <exception cref="KtlsNotAvailableException">
    /// Kernel TLS is required, and this version of Kestrel is not known.
    /// </exception>
    public void Configure(ListenOptions endpoint, Action<KtlsOptions>? configure)
    {
        bool isNew = !_configurations.TryGetValue(endpoint, out EndpointConfiguration? configuration);
        if (isNew)
        {
            configuration = new EndpointConfiguration(server.CreateOptions());
            _configurations.Add(endpoint, configuration);
        }

        configure?.Invoke(configuration!.Options);
        if (!KestrelInternals.IsAvailable)
        {
            server.Refuse(endpoint.ToString()!, KtlsFallbackReason.KestrelNotSupported, configuration!.Options);
        }
        else if (isNew)
        {
            // First in the list, so it is built after all other middleware of the endpoint.
            InsertTlsMiddleware(endpoint);
            KestrelInternals.MiddlewareOf(endpoint).Insert(0, next => Verify(endpoint, configuration!, next));
        }
    }

    /// <summary>
    /// Inserts a step before each middleware and one for middleware that is added later. When the pipeline is built,
    /// the step in front of Kestrel's HTTPS middleware becomes the TLS middleware, and the others disappear.
    /// </summary>
    private void InsertTlsMiddleware(ListenOptions endpoint)
    {
        List<Func<ConnectionDelegate, ConnectionDelegate>> middleware = KestrelInternals.MiddlewareOf(endpoint);
        for (int i = middleware.Count; i >= 0; i--)
        {
            middleware.Insert(i, next => Build(endpoint, next));
        }
    }

    private ConnectionDelegate Build(ListenOptions endpoint, ConnectionDelegate next)
    {
        // If steps were inserted before, a step between two of them leaves the work to the other one.
        if (KestrelHttpsMiddleware.Of(next) is not { } https)
        {
            return next;
        }

        KtlsOptions options = server.Options;
        if (_configurations.TryGetValue(endpoint, out EndpointConfiguration? configuration))
        {
            options = configuration.Options;
            configuration.HasHttps = true;
        }

        string text = endpoint.ToString()!;
        EngineChoice choice = KernelTlsServer.Choose(options);
        if (endpoint.IPEndPoint is null)
        {
            choice = choice.Where(KtlsFallbackReason.NotTcp, KtlsFallbackReason.NotTcp);
        }

        switch (choice.Engine)
        {
            case Engine.Managed:
                return UseStockTls(text, choice, options, next);
            case Engine.Kernel:
                _logger.EndpointServed(text);
                break;
            default:
                _logger.EndpointServedByOpenSsl(text, choice.KernelReason);
                break;
        }

        server.MarkServed();
        KestrelMetrics? metrics = KestrelMetrics.Of(endpoint.ApplicationServices);

        TlsEndpoint served = new(text, https, options.Copy(), server, metrics, _logger, _httpsLogger);
        return new TlsMiddleware(next, served).OnConnectionAsync;
    }

    /// <summary>Checks, when all of the endpoint's middleware is built, whether UseHttps was among it.</summary>
    private ConnectionDelegate Verify(ListenOptions endpoint, EndpointConfiguration configuration, ConnectionDelegate next)
    {
        if (configuration.HasHttps)
        {
            return next;
        }

        string text = endpoint.ToString()!;
        return KestrelInternals.IsHttps(endpoint)
            ? UseStockTls(
                text,
                new EngineChoice(KtlsFallbackReason.EndpointNotFound, KtlsFallbackReason.EndpointNotFound),
                configuration.Options,
                next)
            : throw new InvalidOperationException(
                $"UseKernelTls was called for {text}, which does not use UseHttps. Call UseHttps for it, or call UseKernelTls on the web "
                + "host's builder for all endpoints that use UseHttps.");
    }

    private ConnectionDelegate UseStockTls(string endpoint, EngineChoice choice, KtlsOptions options, ConnectionDelegate next)
    {
        server.Refuse(endpoint, choice.Reason, options);
        StockTlsFeature stock = new(KtlsOffload.Managed(choice));
        return context =>
        {
            DeferredConnection.MarkSeen(context);
            context.Features.Set<IKtlsFeature>(stock);
            return next(context);
        };
    }

    /// <summary>Contains the options that <c>UseKernelTls</c> set for an endpoint.</summary>
    private sealed class EndpointConfiguration(KtlsOptions options)
    {
        public KtlsOptions Options => options;

        /// <summary>
        /// Gets or sets a value that indicates whether the endpoint's UseHttps was found when its pipeline was built.
        /// </summary>
        public bool HasHttps { get; set; }
    }
}

using System.Runtime.CompilerServices;
using KernelTls.AspNetCore.Internals;
using KernelTls.AspNetCore.Tls;
using KernelTls.AspNetCore.Transport;
using KernelTls.Offload;
using Microsoft.AspNetCore.Connections;
using Microsoft.AspNetCore.Server.Kestrel.Core;
using Microsoft.Extensions.Configuration;
using Microsoft.Extensions.Logging;
using Microsoft.Extensions.Options;

namespace KernelTls.AspNetCore;

/// <summary>
/// Inserts the TLS middleware directly in front of Kestrel's HTTPS middleware of every endpoint, whether created in
/// code or by the configuration. Kestrel's middleware passes on connections that already have TLS features.
/// </summary>
internal sealed class EndpointSetup(KernelTlsServer server, KestrelSupport kestrel, EndpointReport report, ILoggerFactory loggers)
    : IPostConfigureOptions<KestrelServerOptions>
{
    private readonly ILogger<TlsMiddleware> _logger = loggers.CreateLogger<TlsMiddleware>();
    private readonly ILogger _httpsLogger = loggers.CreateLogger(KestrelInternals.HttpsCategory);
    private readonly ConditionalWeakTable<ListenOptions, EndpointConfiguration> _configurations = [];

    public void PostConfigure(string? name, KestrelServerOptions options)
    {
        bool isActive = server.IsActive;
        IConfigurationSection[] sections = options.ConfigurationLoader is { } loader ? [.. KtlsConfiguration.Endpoints(loader.Configuration)] : [];
        if (!isActive && sections.Length == 0)
        {
            return;
        }

        if (kestrel.Reason == KtlsFallbackReason.None)
        {
            InsertTlsMiddleware(options);
            return;
        }

        foreach (IConfigurationSection section in sections)
        {
            KtlsOptions wanted = server.CreateOptions();
            KtlsConfiguration.Bind(section, wanted);
            server.Refuse(section.Path, kestrel.Reason, wanted);
        }
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
            configuration = new EndpointConfiguration(server.CreateRequestedOptions);
            _configurations.Add(endpoint, configuration);
        }

        if (configure is not null)
        {
            configuration!.Changes.Add(configure);
        }

        if (kestrel.Reason != KtlsFallbackReason.None)
        {
            server.Refuse(endpoint.ToString()!, kestrel.Reason, configuration!.CreateOptions(null));
        }
        else if (isNew)
        {
            InsertTlsMiddleware(endpoint);
        }
    }

    private void InsertTlsMiddleware(KestrelServerOptions options)
    {
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

    /// <summary>
    /// Inserts a step before each middleware and one for middleware that is added later. When the pipeline is built,
    /// the step in front of Kestrel's HTTPS middleware becomes the TLS middleware, and the others disappear
    /// (docs/architecture/kestrel.md, "Finding the endpoints", has a drawing).
    /// </summary>
    private void InsertTlsMiddleware(ListenOptions endpoint)
    {
        List<Func<ConnectionDelegate, ConnectionDelegate>> middleware = KestrelInternals.MiddlewareOf(endpoint);
        for (int i = middleware.Count; i >= 0; i--)
        {
            middleware.Insert(i, next => Build(endpoint, next));
        }

        // First in the list, so it is built after all other middleware of the endpoint.
        middleware.Insert(0, next => Find(endpoint) is { } configuration ? Verify(endpoint, configuration, next) : next);
    }

    /// <summary>Returns what the code or the configuration says about an endpoint, or null if it has the server's options.</summary>
    private EndpointConfiguration? Find(ListenOptions endpoint)
    {
        if (!_configurations.TryGetValue(endpoint, out EndpointConfiguration? configuration) && SectionOf(endpoint) is not null)
        {
            configuration = new EndpointConfiguration(server.CreateOptions);
            _configurations.Add(endpoint, configuration);
        }

        return configuration;
    }

    private static IConfigurationSection? SectionOf(ListenOptions endpoint) =>
        KestrelInternals.SectionOf(endpoint)?.GetSection(KtlsConfiguration.Key) is { } section && section.Exists() ? section : null;

    private ConnectionDelegate Build(ListenOptions endpoint, ConnectionDelegate next)
    {
        // Of two steps in a row, the outer one is given what the inner one has returned, and leaves it as it is.
        if (KestrelHttpsMiddleware.Of(next) is not { } https)
        {
            return next;
        }

        KtlsOptions options = server.Options;
        if (Find(endpoint) is { } configuration)
        {
            options = configuration.CreateOptions(SectionOf(endpoint));
            configuration.IsSettled = true;
        }
        else if (!server.IsActive)
        {
            return next;
        }

        kestrel.Check(https);
        string text = endpoint.ToString()!;
        EngineChoice choice = server.Choose(options);
        if (endpoint.IPEndPoint is null)
        {
            choice = choice.Where(KtlsFallbackReason.NotTcp, KtlsFallbackReason.NotTcp);
        }

        if (choice.Engine == Engine.Managed)
        {
            return UseStockTls(endpoint, choice, options, next);
        }

        report.Add(endpoint, choice);
        server.MarkServed();
        KestrelMetrics? metrics = KestrelMetrics.Of(endpoint.ApplicationServices);

        TlsEndpoint served = new(text, https, options.Copy(), server, metrics, _logger, _httpsLogger);
        return new TlsMiddleware(next, served).OnConnectionAsync;
    }

    /// <summary>Checks, when all of the endpoint's middleware is built, whether UseHttps was among it.</summary>
    private ConnectionDelegate Verify(ListenOptions endpoint, EndpointConfiguration configuration, ConnectionDelegate next)
    {
        if (configuration.IsSettled)
        {
            return next;
        }

        configuration.IsSettled = true;
        string text = endpoint.ToString()!;
        return KestrelInternals.IsHttps(endpoint)
            ? UseStockTls(
                endpoint,
                new EngineChoice(KtlsFallbackReason.EndpointNotFound, KtlsFallbackReason.EndpointNotFound),
                configuration.CreateOptions(SectionOf(endpoint)),
                next)
            : throw new InvalidOperationException(SectionOf(endpoint) is { } section
                ? $"{section.Path} has options for {text}, which does not use https. Give it an https:// URL, or remove the section."
                : $"UseKernelTls was called for {text}, which does not use UseHttps. Call UseHttps for it, or call UseKernelTls on the web "
                    + "host's builder for all endpoints that use UseHttps.");
    }

    private ConnectionDelegate UseStockTls(ListenOptions endpoint, EngineChoice choice, KtlsOptions options, ConnectionDelegate next)
    {
        KernelTlsServer.ThrowIfRequired(endpoint.ToString()!, choice.Reason, options);
        report.Add(endpoint, choice);
        StockTlsFeature stock = new(KtlsOffload.Managed(choice));
        return context =>
        {
            DeferredConnection.MarkSeen(context);
            context.Features.Set<IKtlsFeature>(stock);
            return next(context);
        };
    }

    /// <summary>Contains what <c>UseKernelTls</c> or the configuration says about an endpoint.</summary>
    /// <param name="basis">The function that creates the options before that.</param>
    private sealed class EndpointConfiguration(Func<KtlsOptions> basis)
    {
        /// <summary>Gets the delegates of the calls of <c>UseKernelTls</c>.</summary>
        public List<Action<KtlsOptions>> Changes { get; } = [];

        /// <summary>
        /// Gets or sets a value that indicates whether the endpoint's UseHttps was found when its pipeline was built, or that it is missing
        /// was reported: the step that reports may have been inserted twice.
        /// </summary>
        public bool IsSettled { get; set; }

        /// <summary>Creates the endpoint's options: the section of the configuration changes the server's, and the code changes the result.</summary>
        public KtlsOptions CreateOptions(IConfigurationSection? section)
        {
            KtlsOptions options = basis();
            if (section is not null)
            {
                KtlsConfiguration.Bind(section, options);
            }

            Changes.ForEach(change => change(options));
            return options;
        }
    }
}

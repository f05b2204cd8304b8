using System.Runtime.CompilerServices;
using KernelTls.AspNetCore.Tls;
using KernelTls.AspNetCore.Transport;
using KernelTls.Offload;
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
    private readonly ILogger _httpsLogger = loggers.CreateLogger(KestrelInternals.HttpsCategory);
    private readonly ConditionalWeakTable<ListenOptions, EndpointChoice> _choices = [];

    public void PostConfigure(string? name, KestrelServerOptions options)
    {
        if (!server.IsActive)
        {
            return;
        }

        foreach (ListenOptions endpoint in KestrelInternals.EndpointsOf(options))
        {
            StandInFront(endpoint);
        }

        // The others of the configuration and those of --urls are yet to be made; they get UseHttps after their defaults.
        Action<ListenOptions> defaults = KestrelInternals.EndpointDefaultsOf(options);
        options.ConfigureEndpointDefaults(endpoint =>
        {
            defaults(endpoint);
            StandInFront(endpoint);
        });
    }

    /// <summary>Gives an endpoint options of its own, or changes those that it was given before.</summary>
    /// <exception cref="KtlsNotAvailableException">Kernel TLS is required, and this Kestrel is not known.</exception>
    public void Choose(ListenOptions endpoint, Action<KtlsOptions>? configure)
    {
        bool isNew = !_choices.TryGetValue(endpoint, out EndpointChoice? choice);
        if (isNew)
        {
            choice = new EndpointChoice(server.CreateOptions());
            _choices.Add(endpoint, choice);
        }

        configure?.Invoke(choice!.Options);
        if (!KestrelInternals.IsAvailable)
        {
            server.Refuse(endpoint.ToString()!, KtlsFallbackReason.KestrelNotKnown, choice!.Options);
        }
        else if (isNew)
        {
            // In front of all that is there, so built last of all that the endpoint will have.
            StandInFront(endpoint);
            KestrelInternals.MiddlewareOf(endpoint).Insert(0, next => Verify(endpoint, choice!, next));
        }
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
        // The step between two of ours, where steps were placed before, is the other one's business.
        if (KestrelInternals.HttpsMiddlewareOf(next) is not { } https)
        {
            return next;
        }

        KtlsOptions options = server.Options;
        if (_choices.TryGetValue(endpoint, out EndpointChoice? choice))
        {
            options = choice.Options;
            choice.HasHttps = true;
        }

        string text = endpoint.ToString()!;
        KtlsFallbackReason reason = KernelTlsServer.WhyNot(options);
        if (reason == KtlsFallbackReason.None && endpoint.IPEndPoint is null)
        {
            reason = KtlsFallbackReason.NotTcp;
        }

        if (reason != KtlsFallbackReason.None)
        {
            return LeaveToStock(text, reason, options, next);
        }

        if (KtlsStream.ChooseEngine(options).Engine == Engine.Kernel)
        {
            _logger.EndpointServed(text);
        }
        else
        {
            _logger.EndpointServedWithoutKernel(text);
        }

        server.NoteServed();
        object? metrics = KestrelInternals.MetricsOf(endpoint.ApplicationServices);

        // HTTP knows where a request ends: a client that leaves between two has not failed, and one that leaves within is told apart.
        ServedEndpoint served = new(text, options.ForFramedProtocol(), server, metrics, _logger, _httpsLogger);
        return new TlsMiddleware(next, served, new EndpointOptions(https)).OnConnectionAsync;
    }

    /// <summary>All of the endpoint's middleware is built: was UseHttps among it?</summary>
    private ConnectionDelegate Verify(ListenOptions endpoint, EndpointChoice choice, ConnectionDelegate next)
    {
        if (choice.HasHttps)
        {
            return next;
        }

        string text = endpoint.ToString()!;
        return KestrelInternals.IsHttps(endpoint)
            ? LeaveToStock(text, KtlsFallbackReason.EndpointNotFound, choice.Options, next)
            : throw new InvalidOperationException(
                $"UseKernelTls was called for {text}, which has no UseHttps: call UseHttps for it, or UseKernelTls on the web "
                + "host's builder, for all endpoints that have it.");
    }

    private ConnectionDelegate LeaveToStock(string endpoint, KtlsFallbackReason reason, KtlsOptions options, ConnectionDelegate next)
    {
        server.Refuse(endpoint, reason, options);
        return context =>
        {
            DeferredConnection.NoteSeen(context);
            return next(context);
        };
    }
}

using KernelTls;
using KernelTls.AspNetCore;
using KernelTls.AspNetCore.Transport;
using KernelTls.Diagnostics;
using Microsoft.AspNetCore.Connections;
using Microsoft.AspNetCore.Server.Kestrel.Core;
using Microsoft.AspNetCore.Server.Kestrel.Transport.Sockets;
using Microsoft.Extensions.DependencyInjection;
using Microsoft.Extensions.DependencyInjection.Extensions;
using Microsoft.Extensions.Options;

namespace Microsoft.AspNetCore.Hosting;

/// <summary>Adds kernel TLS to Kestrel.</summary>
public static class KernelTlsWebHostBuilderExtensions
{
    /// <summary>
    /// Serves Kestrel's https endpoints on TCP with kernel TLS, for HTTP/1.1 and HTTP/2. Endpoints are configured as
    /// usual, by <c>UseHttps</c>, <c>ConfigureHttpsDefaults</c> or the configuration.
    /// </summary>
    /// <remarks>
    /// <para>
    /// <see cref="KtlsOptions.Mode"/> is <see cref="KtlsMode.Preferred"/> unless <paramref name="configure"/> changes
    /// it: endpoints and connections that cannot use kernel TLS fall back to what <see cref="KtlsOptions.Fallback"/> names, OpenSSL on the
    /// socket or Kestrel's HTTPS middleware, and the reason is logged once. With <see cref="KtlsMode.Required"/> the server does not start if the platform or an endpoint
    /// does not support kernel TLS, and a connection that cannot use it is refused.
    /// <c>DOTNET_SYSTEM_NET_SECURITY_KTLS=0</c> overrides this call.
    /// </para>
    /// <para>
    /// The section <c>KernelTls</c> of the configuration sets the options by their names before <paramref name="configure"/> changes them, and
    /// <c>Kestrel:Endpoints:NAME:KernelTls</c> those of one endpoint of the configuration. A key or value that is not known is an
    /// <see cref="InvalidOperationException"/> when the server starts.
    /// </para>
    /// <para>
    /// A single endpoint may have its own options (<see cref="KernelTlsListenOptionsExtensions.UseKernelTls"/>). The
    /// default transports serve plain http endpoints, Unix domain sockets, named pipes and HTTP/3. A transport that is
    /// registered after this call takes precedence.
    /// </para>
    /// </remarks>
    /// <param name="builder">The web host's builder.</param>
    /// <param name="configure">The action that changes the options of all connections.</param>
    /// <returns>The same builder, so that calls can be chained.</returns>
    /// <exception cref="ArgumentNullException"><paramref name="builder"/> is <see langword="null"/>.</exception>
    public static IWebHostBuilder UseKernelTls(this IWebHostBuilder builder, Action<KtlsOptions>? configure = null)
    {
        ArgumentNullException.ThrowIfNull(builder);
        return builder.ConfigureServices(services =>
        {
            AddTransport(services);
            services.AddSingleton<HostOptionsSetup.ByCode>();
            if (configure is not null)
            {
                services.Configure(KernelTlsServer.OptionsName, configure);
            }
        });
    }

    /// <summary>Registers the transport once, with precedence over the transports registered before.</summary>
    internal static void AddTransport(IServiceCollection services)
    {
        if (services.Any(s => s.ServiceType == typeof(KernelTlsServer)))
        {
            return;
        }

        StockHandshakeMonitor.IsKestrelReported = true;
        services.AddOptions();
        services.AddSingleton<IConfigureOptions<KtlsOptions>, HostOptionsSetup>();
        services.TryAddSingleton(KestrelSupport.Current);
        services.AddSingleton<KernelTlsServer>();
        services.AddSingleton<EndpointSetup>();
        services.AddSingleton<IPostConfigureOptions<KestrelServerOptions>>(s => s.GetRequiredService<EndpointSetup>());
        services.AddSingleton<IStartupFilter, RequestFilter>();
        services.AddSingleton<IStartupFilter, StockTlsFilter>();
        services.AddSingleton<EndpointReport>();
        services.AddHostedService(s => s.GetRequiredService<EndpointReport>());
        services.AddHostedService<ProcessReport>();

        // Kestrel adds its own transport only if none is registered. Without this line, other kinds of endpoints would
        // have no transport.
        services.TryAddSingleton<IConnectionListenerFactory, SocketTransportFactory>();
        services.AddSingleton<IConnectionListenerFactory, DeferredListenerFactory>();
    }
}

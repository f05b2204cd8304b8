using KernelTls.AspNetCore.Transport;
using Microsoft.AspNetCore.Connections;
using Microsoft.AspNetCore.Hosting;
using Microsoft.AspNetCore.Server.Kestrel.Core;
using Microsoft.AspNetCore.Server.Kestrel.Transport.Sockets;
using Microsoft.Extensions.DependencyInjection;
using Microsoft.Extensions.DependencyInjection.Extensions;
using Microsoft.Extensions.Options;

namespace KernelTls.AspNetCore;

/// <summary>Kernel TLS for Kestrel.</summary>
public static class KernelTlsWebHostBuilderExtensions
{
    /// <summary>
    /// Serves Kestrel's https endpoints on TCP by kernel TLS, HTTP/1.1 and HTTP/2 alike. Endpoints are configured as ever, by
    /// <c>UseHttps</c>, <c>ConfigureHttpsDefaults</c> or the configuration.
    /// </summary>
    /// <remarks>
    /// <para>
    /// <see cref="KtlsOptions.Mode"/> is <see cref="KtlsMode.Preferred"/> unless <paramref name="configure"/> changes it: what
    /// cannot be had falls back to the stock TLS, and the log says why, once. With <see cref="KtlsMode.Required"/> the server
    /// does not start where the platform or an endpoint cannot do it, and a connection that cannot is refused.
    /// <c>DOTNET_SYSTEM_NET_SECURITY_KTLS=0</c> overrules this call.
    /// </para>
    /// <para>
    /// A single endpoint may have options of its own (<see cref="KernelTlsListenOptionsExtensions.UseKernelTls"/>).
    /// Plain http endpoints, Unix domain sockets, named pipes and HTTP/3 are served by the stock transports. A transport that is
    /// registered after this call is asked first.
    /// </para>
    /// </remarks>
    /// <param name="builder">The web host's builder.</param>
    /// <param name="configure">Changes the options of all connections.</param>
    /// <returns>The same builder.</returns>
    /// <exception cref="ArgumentNullException"><paramref name="builder"/> is <see langword="null"/>.</exception>
    public static IWebHostBuilder UseKernelTls(this IWebHostBuilder builder, Action<KtlsOptions>? configure = null)
    {
        ArgumentNullException.ThrowIfNull(builder);
        return builder.ConfigureServices(services =>
        {
            AddTransport(services);
            services.Configure<KtlsOptions>(KernelTlsServer.OptionsName, options => options.Mode = KtlsMode.Preferred);
            if (configure is not null)
            {
                services.Configure(KernelTlsServer.OptionsName, configure);
            }
        });
    }

    /// <summary>The transport, once, and in front of those that are there.</summary>
    internal static void AddTransport(IServiceCollection services)
    {
        if (services.Any(s => s.ServiceType == typeof(KernelTlsServer)))
        {
            return;
        }

        services.AddOptions();
        services.AddSingleton<KernelTlsServer>();
        services.AddSingleton<EndpointSetup>();
        services.AddSingleton<IPostConfigureOptions<KestrelServerOptions>>(s => s.GetRequiredService<EndpointSetup>());
        services.AddSingleton<IStartupFilter, ResponseFilesFilter>();

        // Kestrel adds its own transport only where there is none: with ours before it, other kinds of endpoints had none.
        services.TryAddSingleton<IConnectionListenerFactory, SocketTransportFactory>();
        services.AddSingleton<IConnectionListenerFactory, DeferredListenerFactory>();
    }
}

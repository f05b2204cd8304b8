using KernelTls.Offload;
using Microsoft.AspNetCore.Hosting;
using Microsoft.Extensions.Configuration;
using Microsoft.Extensions.DependencyInjection;
using Microsoft.Extensions.Http;

namespace KernelTls.AspNetCore;

/// <summary>Enables kernel TLS without code. The package adds this startup class to the application.</summary>
/// <remarks>
/// It registers the transport, and kernel TLS for the clients of IHttpClientFactory, if <c>DOTNET_SYSTEM_NET_SECURITY_KTLS</c>,
/// <c>DOTNET_SYSTEM_NET_SECURITY_DIRECT_OPENSSL</c> or the AppContext switch <c>System.Net.Security.Ktls</c> enables it, or if one of the
/// variables has an invalid value, which the transport reports, or if the configuration has a section <c>KernelTls</c>, for the host or in
/// <c>Kestrel:Endpoints:NAME</c>. Otherwise it registers nothing.
/// </remarks>
public sealed class KernelTlsHostingStartup : IHostingStartup
{
    /// <inheritdoc/>
    public void Configure(IWebHostBuilder builder)
    {
        ArgumentNullException.ThrowIfNull(builder);
        builder.ConfigureServices((context, services) =>
        {
            if (Toggles.AreOn || KtlsConfiguration.IsIn(context.Configuration))
            {
                KernelTlsWebHostBuilderExtensions.AddTransport(services);
                services.AddSingleton<IHttpMessageHandlerBuilderFilter, KtlsHandlerFilter>();
                services.AddOptions<KtlsOptions>(KtlsHandlerFilter.OptionsName).Configure<IConfiguration>(KtlsConfiguration.BindHost);
            }
        });
    }
}

using KernelTls.Offload;
using Microsoft.AspNetCore.Hosting;
using Microsoft.Extensions.DependencyInjection;
using Microsoft.Extensions.Http;

namespace KernelTls.AspNetCore;

/// <summary>
/// Kernel TLS without code: the package adds this start-up to the application. It registers the transport,
/// and kernel TLS for the clients of IHttpClientFactory, where <c>DOTNET_SYSTEM_NET_SECURITY_KTLS</c>, or the AppContext switch
/// <c>System.Net.Security.Ktls</c>, switches it on, and nothing at all where it is not set or <c>0</c>.
/// </summary>
public sealed class KernelTlsHostingStartup : IHostingStartup
{
    /// <inheritdoc/>
    public void Configure(IWebHostBuilder builder)
    {
        ArgumentNullException.ThrowIfNull(builder);
        if (IsAsked(Toggles.Kernel, Toggles.DirectOpenSsl))
        {
            builder.ConfigureServices(services =>
            {
                KernelTlsWebHostBuilderExtensions.AddTransport(services);
                services.AddSingleton<IHttpMessageHandlerBuilderFilter, KtlsHandlerFilter>();
            });
        }
    }

    /// <summary>A value that is neither on nor off is reported by the transport, not swallowed here.</summary>
    internal static bool IsAsked(Toggle kernel, bool directOpenSsl) =>
        kernel is Toggle.On or Toggle.Invalid || directOpenSsl;
}

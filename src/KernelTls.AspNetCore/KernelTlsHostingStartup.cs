using KernelTls.Offload;
using Microsoft.AspNetCore.Hosting;
using Microsoft.Extensions.DependencyInjection;
using Microsoft.Extensions.Http;

namespace KernelTls.AspNetCore;

/// <summary>Enables kernel TLS without code. The package adds this startup class to the application.</summary>
/// <remarks>
/// It registers the transport, and kernel TLS for the clients of IHttpClientFactory, if
/// <c>DOTNET_SYSTEM_NET_SECURITY_KTLS</c> or the AppContext switch <c>System.Net.Security.Ktls</c> enables it. If
/// neither is set, or the variable is <c>0</c>, it registers nothing.
/// </remarks>
public sealed class KernelTlsHostingStartup : IHostingStartup
{
    /// <inheritdoc/>
    public void Configure(IWebHostBuilder builder)
    {
        ArgumentNullException.ThrowIfNull(builder);
        if (IsRequested(Toggles.Kernel, Toggles.DirectOpenSsl))
        {
            builder.ConfigureServices(services =>
            {
                KernelTlsWebHostBuilderExtensions.AddTransport(services);
                services.AddSingleton<IHttpMessageHandlerBuilderFilter, KtlsHandlerFilter>();
            });
        }
    }

    /// <summary>
    /// Returns whether to register the transport. The transport also reports a value that is neither on nor off.
    /// </summary>
    internal static bool IsRequested(Toggle kernel, bool directOpenSsl) =>
        kernel is Toggle.On or Toggle.Invalid || directOpenSsl;
}

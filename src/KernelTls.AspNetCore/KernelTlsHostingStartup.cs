using System.Runtime.CompilerServices;
using KernelTls.Diagnostics;
using KernelTls.Offload;
using Microsoft.AspNetCore.Hosting;
using Microsoft.Extensions.Configuration;
using Microsoft.Extensions.DependencyInjection;

namespace KernelTls.AspNetCore;

/// <summary>Enables kernel TLS without code. The package adds this startup class to the application.</summary>
/// <remarks>
/// <para>
/// It registers the transport, and kernel TLS for the clients of IHttpClientFactory, if <c>DOTNET_SYSTEM_NET_SECURITY_KTLS</c>,
/// <c>DOTNET_SYSTEM_NET_SECURITY_DIRECT_OPENSSL</c> or the AppContext switch <c>System.Net.Security.Ktls</c> enables it, or if one of the
/// variables has an invalid value, which the transport reports, or if the configuration has a section <c>KernelTls</c>, for the host or in
/// <c>Kestrel:Endpoints:NAME</c>. Otherwise it registers nothing.
/// </para>
/// <para>
/// If the assembly KernelTls was not deployed, it registers nothing either, and the log says so if one of the variables is set.
/// </para>
/// </remarks>
public sealed class KernelTlsHostingStartup : IHostingStartup
{
    /// <inheritdoc/>
    public void Configure(IWebHostBuilder builder)
    {
        ArgumentNullException.ThrowIfNull(builder);
        builder.ConfigureServices((context, services) =>
        {
            try
            {
                Register(context.Configuration, services);
            }
            catch (Exception e) when (MissingAssembly.IsCauseOf(e))
            {
                MissingAssembly.Report(services, e);
            }
        });
    }

    /// <summary>Uses the assembly KernelTls from the first line on, so that nothing is registered without it.</summary>
    [MethodImpl(MethodImplOptions.NoInlining)]
    internal static void Register(IConfiguration configuration, IServiceCollection services)
    {
        StockHandshakeMonitor.Start();
        if (Toggles.AreOn || KtlsConfiguration.IsIn(configuration))
        {
            KernelTlsWebHostBuilderExtensions.AddTransport(services);
            KtlsHandlerFilter.Register(services);
        }
    }
}

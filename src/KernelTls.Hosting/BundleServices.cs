using KernelTls.AspNetCore;
using Microsoft.Extensions.DependencyInjection;
using Microsoft.Extensions.Hosting;

namespace KernelTls.Hosting;

/// <summary>Adds kernel TLS for the clients of IHttpClientFactory to a host without a web server. The start-up hook calls it.</summary>
internal static class BundleServices
{
    /// <summary>Adds the services, unless the host has them.</summary>
    internal static void Add(HostBuilderContext context, IServiceCollection services)
    {
        ArgumentNullException.ThrowIfNull(context);
        BundleRegistration.AddClients(services);
    }
}

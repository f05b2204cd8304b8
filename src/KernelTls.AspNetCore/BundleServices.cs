using KernelTls.AspNetCore.Transport;
using Microsoft.AspNetCore.Connections;
using Microsoft.AspNetCore.Hosting.Server;
using Microsoft.AspNetCore.Server.Kestrel.Transport.Sockets;
using Microsoft.Extensions.DependencyInjection;
using Microsoft.Extensions.Hosting;

namespace KernelTls.AspNetCore;

/// <summary>Does for a host that is being built what <see cref="KernelTlsHostingStartup"/> does. The start-up hook calls it.</summary>
internal static class BundleServices
{
    /// <summary>Adds the services, unless the host has them: those for a server only to a host with one.</summary>
    internal static void Add(HostBuilderContext context, IServiceCollection services)
    {
        if (services.Any(s => s.ServiceType == typeof(KernelTlsServer)))
        {
            return;
        }

        if (!services.Any(s => s.ServiceType == typeof(IServer)))
        {
            // Another host of a web application.
            BundleRegistration.AddClients(services);
            return;
        }

        IServiceCollection own = new ServiceCollection();
        KernelTlsHostingStartup.Register(context.Configuration, own);
        ServiceDescriptor? transport = own.FirstOrDefault(s => s.ImplementationType == typeof(DeferredListenerFactory));
        ServiceDescriptor? stock = own.FirstOrDefault(s => s.ImplementationType == typeof(SocketTransportFactory));
        if (transport is not null && stock is not null)
        {
            // Kestrel asks the transports from the last one to the first. Ours is directly behind Kestrel's, so that one that the application
            // has added keeps its precedence.
            own.Remove(transport);
            ServiceDescriptor? present = services.LastOrDefault(s => s.ServiceType == typeof(IConnectionListenerFactory)
                && s.ImplementationType?.Assembly == typeof(SocketTransportFactory).Assembly);
            if (present is not null)
            {
                own.Remove(stock);
                services.Insert(services.IndexOf(present) + 1, transport);
            }
            else
            {
                own.Add(transport);
            }
        }

        BundleRegistration.Prepend(own, services);
    }
}

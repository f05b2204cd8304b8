using Microsoft.Extensions.DependencyInjection;

namespace KernelTls.AspNetCore;

/// <summary>Adds services to a host whose application has already registered its own.</summary>
internal static class BundleRegistration
{
    /// <summary>Adds kernel TLS for the clients of IHttpClientFactory, unless the host has it.</summary>
    public static void AddClients(IServiceCollection services)
    {
        if (services.Any(s => s.ImplementationType == typeof(ProcessReport)))
        {
            return;
        }

        IServiceCollection own = new ServiceCollection();
        own.AddOptions();
        own.AddHostedService<ProcessReport>();
        KtlsHandlerFilter.Register(own);
        Prepend(own, services);
    }

    /// <summary>
    /// Adds the services in front of the application's, as if they had been registered before: the application's registrations take
    /// precedence, and its filters run inside ours.
    /// </summary>
    /// <param name="own">The services to add.</param>
    /// <param name="services">The application's services.</param>
    public static void Prepend(IServiceCollection own, IServiceCollection services)
    {
        HashSet<Type> known = [.. services.Where(s => s.ServiceType.IsGenericTypeDefinition).Select(s => s.ServiceType)];
        int position = 0;
        foreach (ServiceDescriptor service in own.Where(s => !known.Contains(s.ServiceType)))
        {
            services.Insert(position++, service);
        }
    }
}

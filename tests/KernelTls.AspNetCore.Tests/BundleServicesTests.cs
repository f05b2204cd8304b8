using System.Net;
using KernelTls.AspNetCore.Transport;
using KernelTls.Tests;
using Microsoft.AspNetCore.Connections;
using Microsoft.AspNetCore.Hosting;
using Microsoft.AspNetCore.Hosting.Server;
using Microsoft.AspNetCore.Server.Kestrel.Transport.Sockets;
using Microsoft.Extensions.Configuration;
using Microsoft.Extensions.DependencyInjection;
using Microsoft.Extensions.Hosting;
using Microsoft.Extensions.Http;

namespace KernelTls.AspNetCore.Tests;

/// <summary>Tests what the start-up hook adds to a host whose application has registered its services.</summary>
public class BundleServicesTests
{
    [Fact]
    public async Task The_server_uses_what_was_added_when_it_was_built()
    {
        await using Server server = await Server.StartAsync(TlsMode.Stock, builder: builder =>
        {
            builder.Configuration.AddInMemoryCollection(Settings());
            BundleServices.Add(Context(builder.Configuration), builder.Services);
        });
        using HttpClient client = Server.CreateClient("2.0");

        await Offloads.AssertInAsync(TlsMode.DirectOpenSsl, client, server.Https);
    }

    [Fact]
    public void A_transport_of_the_application_keeps_its_precedence()
    {
        ServiceCollection services = WithServer();
        services.AddSingleton<IConnectionListenerFactory, SocketTransportFactory>();
        services.AddSingleton<IConnectionListenerFactory, OwnFactory>();

        BundleServices.Add(Context(), services);

        Assert.Equal(
            [typeof(SocketTransportFactory), typeof(DeferredListenerFactory), typeof(OwnFactory)],
            services.Where(s => s.ServiceType == typeof(IConnectionListenerFactory)).Select(s => s.ImplementationType));
    }

    [Fact]
    public void Services_of_the_application_come_after_ours_and_ours_come_once()
    {
        ServiceCollection services = WithServer();
        services.AddOptions();
        services.AddSingleton<IStartupFilter, OwnFilter>();
        services.AddSingleton<IHttpMessageHandlerBuilderFilter>(_ => throw new NotSupportedException());
        ServiceDescriptor[] before = [.. services];

        BundleServices.Add(Context(), services);
        Type?[] once = [.. services.Select(s => s.ImplementationType)];
        BundleServices.Add(Context(), services);

        Assert.Equal(once, services.Select(s => s.ImplementationType));
        Assert.Equal(before, services.TakeLast(before.Length));
        Assert.Equal(typeof(OwnFilter), services.Last(s => s.ServiceType == typeof(IStartupFilter)).ImplementationType);
        Assert.Equal(typeof(KtlsHandlerFilter), services.First(s => s.ServiceType == typeof(IHttpMessageHandlerBuilderFilter)).ImplementationType);
        Assert.Equal([typeof(SocketTransportFactory), typeof(DeferredListenerFactory)], services.Where(s => s.ServiceType == typeof(IConnectionListenerFactory)).Select(s => s.ImplementationType));
    }

    [Fact]
    public void Nothing_is_added_without_a_switch_and_options()
    {
        ServiceCollection services = WithServer();

        BundleServices.Add(Context(new ConfigurationBuilder().Build()), services);

        Assert.Single(services);
    }

    /// <summary>A web application may have another host, for workers or for its log.</summary>
    [Fact]
    public void A_host_without_a_server_gets_clients_alone()
    {
        ServiceCollection services = [];

        BundleServices.Add(Context(), services);
        BundleServices.Add(Context(), services);

        Assert.Single(services, s => s.ImplementationType == typeof(KtlsHandlerFilter));
        Assert.Single(services, s => s.ServiceType == typeof(IHostedService));
        Assert.DoesNotContain(services, s => s.ServiceType == typeof(KernelTlsServer));
    }

    private static ServiceCollection WithServer()
    {
        ServiceCollection services = [];
        services.AddSingleton<IServer>(_ => throw new NotSupportedException());
        return services;
    }

    private static Dictionary<string, string?> Settings() => new() { ["KernelTls:Mode"] = "Disabled", ["KernelTls:Fallback"] = "OpenSsl" };

    private static HostBuilderContext Context(IConfiguration? configuration = null) => new(new Dictionary<object, object>())
    {
        Configuration = configuration ?? new ConfigurationBuilder().AddInMemoryCollection(Settings()).Build(),
    };

    private sealed class OwnFactory : IConnectionListenerFactory
    {
        public ValueTask<IConnectionListener> BindAsync(EndPoint endpoint, CancellationToken cancellationToken = default) => throw new NotSupportedException();
    }

    private sealed class OwnFilter : IStartupFilter
    {
        public Action<Microsoft.AspNetCore.Builder.IApplicationBuilder> Configure(Action<Microsoft.AspNetCore.Builder.IApplicationBuilder> next) => next;
    }
}

using KernelTls.Tests;
using Microsoft.Extensions.DependencyInjection;
using Microsoft.Extensions.Http;

namespace KernelTls.AspNetCore.Tests;

/// <summary>Tests the handlers of IHttpClientFactory, and those that are left unchanged.</summary>
public class HandlerFilterTests
{
    [Fact]
    public void A_handler_of_the_factory_s_own_connects_by_kernel_TLS()
    {
        Assert.NotNull(PrimaryOf(null).ConnectCallback);
        Assert.NotNull(PrimaryOf(new SocketsHttpHandler()).ConnectCallback);
    }

    [Fact]
    public void A_handler_that_connects_in_a_way_of_its_own_goes_on_so()
    {
        SocketsHttpHandler handler = new() { ConnectCallback = (_, _) => throw new NotSupportedException() };
        Func<SocketsHttpConnectionContext, CancellationToken, ValueTask<Stream>> before = handler.ConnectCallback;
        Assert.Same(before, PrimaryOf(handler).ConnectCallback);
    }

    [Fact]
    public void Switched_off_it_changes_nothing() => Assert.Null(PrimaryOf(null, options => options.Mode = KtlsMode.Disabled).ConnectCallback);

    /// <summary>Returns the factory's handler, made from the application's or from its own.</summary>
    private static SocketsHttpHandler PrimaryOf(SocketsHttpHandler? given, Action<KtlsOptions>? configure = null)
    {
        ServiceCollection services = new();
        services.AddSingleton<IHttpMessageHandlerBuilderFilter, KtlsHandlerFilter>();
        services.Configure(KtlsHandlerFilter.OptionsName, configure ?? (options => (options.Mode, options.Fallback) = (KtlsMode.Disabled, KtlsFallback.OpenSsl)));
        IHttpClientBuilder client = services.AddHttpClient("a client");
        if (given is not null)
        {
            client.ConfigurePrimaryHttpMessageHandler(() => given);
        }

        HttpMessageHandler handler = services.BuildServiceProvider()
            .GetRequiredService<IHttpMessageHandlerFactory>().CreateHandler("a client");
        while (handler is DelegatingHandler { InnerHandler: { } inner })
        {
            handler = inner;
        }

        return Assert.IsType<SocketsHttpHandler>(handler);
    }
}

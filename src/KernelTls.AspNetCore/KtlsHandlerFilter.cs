using KernelTls.Offload;
using Microsoft.Extensions.Configuration;
using Microsoft.Extensions.DependencyInjection;
using Microsoft.Extensions.Http;
using Microsoft.Extensions.Options;

namespace KernelTls.AspNetCore;

/// <summary>
/// Enables kernel TLS for the clients of IHttpClientFactory without code, after the application's own configuration.
/// </summary>
/// <remarks>
/// A handler with its own ConnectCallback, or one that is not a <see cref="SocketsHttpHandler"/>, is left unchanged.
/// All handlers are, if kernel TLS is not available.
/// </remarks>
internal sealed class KtlsHandlerFilter(IOptionsMonitor<KtlsOptions> options) : IHttpMessageHandlerBuilderFilter
{
    /// <summary>The name of the options that apply to all clients of the factory.</summary>
    public const string OptionsName = "KernelTls.HttpClient";

    /// <summary>Registers the filter, and its options, which the section KernelTls of the configuration sets.</summary>
    public static void Register(IServiceCollection services)
    {
        services.AddSingleton<IHttpMessageHandlerBuilderFilter, KtlsHandlerFilter>();
        services.AddOptions<KtlsOptions>(OptionsName).Configure<IConfiguration>(KtlsConfiguration.BindHost);
    }

    public Action<HttpMessageHandlerBuilder> Configure(Action<HttpMessageHandlerBuilder> next) => builder =>
    {
        next(builder);
        KtlsOptions wanted = options.Get(OptionsName);
        if (builder.PrimaryHandler is SocketsHttpHandler { ConnectCallback: null } handler
            && KtlsStream.ChooseEngine(wanted).Engine != Engine.Managed)
        {
            handler.UseKernelTls(wanted);
        }
    };
}

using KernelTls.Offload;
using Microsoft.Extensions.Http;
using Microsoft.Extensions.Options;

namespace KernelTls.AspNetCore;

/// <summary>
/// Kernel TLS for the clients of IHttpClientFactory, without code: whatever the application configures comes first. A handler
/// that connects in a way of its own, or is no <see cref="SocketsHttpHandler"/>, stays as it is; and so do all where kernel TLS
/// is not to be had.
/// </summary>
internal sealed class KtlsHandlerFilter(IOptionsMonitor<KtlsOptions> options) : IHttpMessageHandlerBuilderFilter
{
    /// <summary>The name that the options of all of the factory's clients have.</summary>
    public const string OptionsName = "KernelTls.HttpClient";

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

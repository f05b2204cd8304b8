using KernelTls.AspNetCore.Tls;
using Microsoft.AspNetCore.Builder;
using Microsoft.AspNetCore.Hosting;
using Microsoft.AspNetCore.Http;

namespace KernelTls.AspNetCore;

/// <summary>
/// Sets <see cref="IKtlsFeature"/> on https requests of a server that cannot use kernel TLS.
/// </summary>
/// <remarks>
/// The transport handles no connection of such a server. Adds nothing to the application if the transport handles them,
/// or if kernel TLS is switched off.
/// </remarks>
internal sealed class StockTlsFilter(KernelTlsServer server) : IStartupFilter
{
    public Action<IApplicationBuilder> Configure(Action<IApplicationBuilder> next) => application =>
    {
        if (server.StockReason is not KtlsFallbackReason.None and var reason)
        {
            StockTlsFeature stock = new(KtlsOffload.Managed(reason));
            application.Use(next => context =>
            {
                if (context.Request.IsHttps && context.Features.Get<IKtlsFeature>() is null)
                {
                    context.Features.Set<IKtlsFeature>(stock);
                }

                return next(context);
            });
        }

        next(application);
    };
}

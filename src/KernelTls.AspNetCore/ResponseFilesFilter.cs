using KernelTls.AspNetCore.Tls;
using Microsoft.AspNetCore.Builder;
using Microsoft.AspNetCore.Hosting;

namespace KernelTls.AspNetCore;

/// <summary>
/// Puts <see cref="ResponseFiles"/> in front of the application, so that what the application puts in the place of the response's
/// body stands before it. Requests on other connections pass.
/// </summary>
internal sealed class ResponseFilesFilter : IStartupFilter
{
    public Action<IApplicationBuilder> Configure(Action<IApplicationBuilder> next) => application =>
    {
        application.Use(static next => context =>
        {
            ResponseFiles.Attach(context.Features);
            return next(context);
        });
        next(application);
    };
}

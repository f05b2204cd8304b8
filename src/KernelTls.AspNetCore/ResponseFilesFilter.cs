using KernelTls.AspNetCore.Tls;
using Microsoft.AspNetCore.Builder;
using Microsoft.AspNetCore.Hosting;

namespace KernelTls.AspNetCore;

/// <summary>
/// Attaches <see cref="ResponseFiles"/> before the application runs, so that a response body feature of the application
/// wraps it. Requests on other connections are unchanged.
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

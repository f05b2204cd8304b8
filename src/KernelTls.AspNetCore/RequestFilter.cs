using KernelTls.AspNetCore.Tls;
using Microsoft.AspNetCore.Builder;
using Microsoft.AspNetCore.Hosting;

namespace KernelTls.AspNetCore;

/// <summary>
/// Prepares each request before the application runs: repairs its HTTP/2 stream (<see cref="ReusedStreams"/>), and
/// attaches <see cref="ResponseFiles"/>, so that a response body feature of the application wraps it. Requests on other
/// connections are unchanged.
/// </summary>
internal sealed class RequestFilter : IStartupFilter
{
    public Action<IApplicationBuilder> Configure(Action<IApplicationBuilder> next) => application =>
    {
        // Tries Kestrel's members at the start of the server instead of in its first request.
        bool repairsStreams = ReusedStreams.IsEnabled;
        application.Use(next => context =>
        {
            if (repairsStreams)
            {
                ReusedStreams.Repair(context.Features);
            }

            ResponseFiles.Attach(context.Features);
            return next(context);
        });
        next(application);
    };
}

using KernelTls.AspNetCore.Internals;
using KernelTls.AspNetCore.Tls;
using Microsoft.AspNetCore.Builder;
using Microsoft.AspNetCore.Hosting;
using Microsoft.Extensions.DependencyInjection;

namespace KernelTls.AspNetCore.Tests;

/// <summary>
/// Repairs the HTTP/2 streams of the stock transport as <see cref="ReusedStreams"/> repairs those of this library's. Without it, one
/// request in thousands is never answered if it follows a response a little larger than the client's window of 65,535 bytes
/// (dotnet/aspnetcore#53736), and fails a test that has another subject.
/// </summary>
internal sealed class StockStreams : IStartupFilter
{
    /// <summary>Leaves the streams of a server as Kestrel does.</summary>
    public static void Leave(WebApplicationBuilder builder) =>
        Assert.True(builder.Services.Remove(Assert.Single(builder.Services, s => s.ImplementationType == typeof(StockStreams))));

    public Action<IApplicationBuilder> Configure(Action<IApplicationBuilder> next) => application =>
    {
        application.Use(static next => context =>
        {
            if (context.Features.Get<ReusedStreams>() is null && KestrelHttp2Stream.Of(context.Features) is { IsScheduled: true } stream)
            {
                stream.ClearScheduled();
            }

            return next(context);
        });
        next(application);
    };
}

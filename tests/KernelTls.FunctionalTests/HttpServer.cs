using System.Net;
using System.Security.Cryptography.X509Certificates;
using KernelTls.Tests;
using Microsoft.AspNetCore.Builder;
using Microsoft.AspNetCore.Hosting;
using Microsoft.AspNetCore.Hosting.Server;
using Microsoft.AspNetCore.Hosting.Server.Features;
using Microsoft.AspNetCore.Http;
using Microsoft.AspNetCore.Server.Kestrel.Core;
using Microsoft.Extensions.DependencyInjection;
using Microsoft.Extensions.Logging;

namespace KernelTls.FunctionalTests;

/// <summary>
/// Runs Kestrel with its stock TLS: GET /bytes/N returns N bytes of the pattern, POST /check counts them.
/// </summary>
internal sealed class HttpServer : IAsyncDisposable
{
    private readonly WebApplication _application;

    private HttpServer(WebApplication application) => _application = application;

    public Uri Https { get; private set; } = null!;

    public Uri Http { get; private set; } = null!;

    public static async Task<HttpServer> StartAsync(X509Certificate2? certificate = null)
    {
        WebApplicationBuilder builder = WebApplication.CreateEmptyBuilder(new WebApplicationOptions());
        builder.WebHost.UseKestrelCore().ConfigureKestrel(kestrel =>
        {
            // The server's default limits are not for emulated machines. The tests have their own.
            kestrel.Limits.MaxRequestBodySize = null;
            kestrel.Limits.RequestHeadersTimeout = Limits.Wait;
            kestrel.Limits.MinResponseDataRate = kestrel.Limits.MinRequestBodyDataRate = null;
            kestrel.Listen(IPAddress.Loopback, 0, listen => listen.UseHttps(
                certificate ?? Certificates.Ecdsa, https => https.HandshakeTimeout = Limits.Wait));
            kestrel.Listen(IPAddress.Loopback, 0, listen => listen.Protocols = HttpProtocols.Http1);
        });
        builder.WebHost.UseKestrelHttpsConfiguration();
        builder.Services.AddRoutingCore();
        WebApplication application = builder.Build();
        application.UseRouting();
        application.MapGet("/bytes/{count:long}", async (HttpContext context, long count) =>
        {
            context.Response.ContentLength = count;
            await Pattern.SendAsync(context.Response.Body, count);
        });
        application.MapPost("/check", async (HttpContext context) =>
        {
            long count = 0;
            byte[] buffer = new byte[64 * 1024];
            for (int read; (read = await context.Request.Body.ReadAsync(buffer)) > 0; count += read)
            {
                Pattern.AssertAt(count, buffer.AsSpan(0, read));
            }

            await context.Response.WriteAsync($"{count} {context.Request.Protocol}");
        });
        await application.StartAsync().InTime("Kestrel to start");

        HttpServer server = new(application);
        foreach (string address in application.Services.GetRequiredService<IServer>().Features.Get<IServerAddressesFeature>()!.Addresses)
        {
            Uri uri = new(address);
            server.Https = uri.Scheme == "https" ? uri : server.Https;
            server.Http = uri.Scheme == "http" ? uri : server.Http;
        }

        return server;
    }

    public async ValueTask DisposeAsync()
    {
        await _application.StopAsync(new CancellationToken(true));
        await _application.DisposeAsync();
    }
}

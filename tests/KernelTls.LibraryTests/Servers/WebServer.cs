using System.Net;
using KernelTls.AspNetCore;
using KernelTls.Tests;
using Microsoft.AspNetCore.Builder;
using Microsoft.AspNetCore.Hosting;
using Microsoft.AspNetCore.Http;
using Microsoft.AspNetCore.Server.Kestrel.Core;
using Microsoft.AspNetCore.Server.Kestrel.Https;
using Microsoft.Extensions.DependencyInjection;
using Microsoft.Extensions.Logging;

namespace KernelTls.LibraryTests.Servers;

/// <summary>
/// Represents Kestrel, switched by the variable, on a port that it keeps when it restarts. A client certificate is requested but not
/// required.
/// </summary>
internal sealed class WebServer(
    Action<IServiceCollection>? services = null, Action<WebApplication>? endpoints = null, HttpProtocols protocols = HttpProtocols.Http1AndHttp2)
    : IAsyncDisposable
{
    private readonly ReservedPort _port = new();
    private WebApplication? _application;
    private int _connections;
    private int _ended;

    public Uri Address => new($"https://127.0.0.1:{_port.Number}");

    /// <summary>Gets the number of accepted connections.</summary>
    public int Connections => Volatile.Read(ref _connections);

    /// <summary>Gets the number of accepted connections that have ended.</summary>
    public int Ended => Volatile.Read(ref _ended);

    public static async Task<WebServer> StartedAsync(Action<IServiceCollection>? services = null, Action<WebApplication>? endpoints = null)
    {
        WebServer server = new(services, endpoints);
        await server.StartAsync();
        return server;
    }

    public async Task StartAsync()
    {
        WebApplicationBuilder builder = WebApplication.CreateSlimBuilder();
        builder.Logging.ClearProviders();
        builder.WebHost.UseKestrelHttpsConfiguration();
        builder.WebHost.UseKernelTls(options => options.Mode = KtlsMode.Environment);
        builder.WebHost.ConfigureKestrel(kestrel =>
        {
            kestrel.Limits.MaxRequestBodySize = null;
            kestrel.Listen(IPAddress.Loopback, _port.Number, listen =>
            {
                listen.Protocols = protocols;
                listen.Use(next => async connection =>
                {
                    Interlocked.Increment(ref _connections);
                    try
                    {
                        await next(connection);
                    }
                    finally
                    {
                        Interlocked.Increment(ref _ended);
                    }
                });
                listen.UseHttps(new HttpsConnectionAdapterOptions
                {
                    ServerCertificate = Certificates.Ecdsa,
                    ClientCertificateMode = ClientCertificateMode.AllowCertificate,
                    ClientCertificateValidation = (_, _, _) => true,
                });
            });
        });
        services?.Invoke(builder.Services);
        _application = builder.Build();
        endpoints?.Invoke(_application);
        await _application.StartAsync().InTime("the server's start");
    }

    /// <summary>Ends the server without waiting for its connections.</summary>
    public async Task StopAsync()
    {
        if (_application is { } application)
        {
            _application = null;
            await application.StopAsync(new CancellationToken(true)).InTime("the server's end");
            await application.DisposeAsync();
        }
    }

    public async ValueTask DisposeAsync()
    {
        await StopAsync();
        _port.Dispose();
    }

    /// <summary>Maps the paths that the tests request.</summary>
    public static void MapTestEndpoints(WebApplication application)
    {
        application.MapGet("/number/{n:int}", (int n) => $"{n} {n}");
        application.MapGet("/bytes/{count:int}", async (HttpContext context, int count) =>
        {
            context.Response.ContentLength = count;
            await Pattern.SendAsync(context.Response.Body, count);
        });
        application.MapPost("/check/{count:int}", async (HttpContext context, int count) =>
        {
            await Pattern.ReceiveAsync(context.Request.Body, count);
            return $"{count} {context.Request.Protocol}";
        });
        application.MapGet("/endless", async (HttpContext context) =>
        {
            for (long sent = 0; ; sent++)
            {
                await context.Response.WriteAsync("again and again\n", context.RequestAborted);
            }
        });
        application.MapGet("/certificate", (HttpContext context) => context.Connection.ClientCertificate?.Subject ?? "none");
    }
}

using System.Net;
using KernelTls.AspNetCore;
using Microsoft.AspNetCore.Builder;
using Microsoft.AspNetCore.Hosting;
using Microsoft.AspNetCore.Hosting.Server;
using Microsoft.AspNetCore.Hosting.Server.Features;
using Microsoft.AspNetCore.Http;
using Microsoft.AspNetCore.Http.Features;
using Microsoft.AspNetCore.Server.Kestrel.Core;
using Microsoft.Extensions.DependencyInjection;
using Microsoft.Extensions.Logging;

namespace KernelTls.Soak;

/// <summary>Runs Kestrel with payloads, files, payloads that are verified, and calls in the manner of gRPC.</summary>
internal sealed class WebServer : IAsyncDisposable
{
    public const string HashHeader = "payload-sha256";
    public const int FileSize = 300_007;

    private readonly WebApplication _application;
    private readonly string _file;

    private WebServer(WebApplication application, string file)
    {
        _application = application;
        _file = file;
    }

    public static async Task<WebServer> StartAsync(SoakContext context)
    {
        WebApplicationBuilder builder = WebApplication.CreateEmptyBuilder(new WebApplicationOptions());
        builder.Logging.AddProvider(new FailureLog(context.Findings));
        builder.WebHost.UseKestrelCore().UseKestrelHttpsConfiguration().ConfigureKestrel(kestrel =>
        {
            kestrel.Limits.MinResponseDataRate = kestrel.Limits.MinRequestBodyDataRate = null;
            kestrel.Limits.KeepAliveTimeout = TimeSpan.FromHours(1);

            // The server's default limits are not for machines with few processors. The clients have their own.
            kestrel.Limits.RequestHeadersTimeout = SoakClient.Limit;
            kestrel.Listen(IPAddress.Loopback, 0, endpoint =>
            {
                endpoint.Protocols = HttpProtocols.Http1AndHttp2;
                endpoint.UseHttps(context.Certificate, https => https.HandshakeTimeout = SoakClient.Limit);
            });
        });
        if (context.Options.Mode != SoakMode.Stock)
        {
            KtlsOptions wanted = context.Options.CreateStreamOptions();
            builder.WebHost.UseKernelTls(options =>
            {
                options.Mode = wanted.Mode == KtlsMode.Required ? KtlsMode.Preferred : wanted.Mode;
                options.Fallback = wanted.Fallback;
            });
        }

        builder.Services.AddRoutingCore();
        string file = Path.GetTempFileName();
        ReadOnlyMemory<byte> content = Payload.Take(new Random(context.Options.Seed), FileSize);
        await File.WriteAllBytesAsync(file, content);
        WebApplication application = builder.Build();
        application.UseRouting();
        Map(application, context, file, Payload.Hash(content.Span));
        await application.StartAsync();
        string address = application.Services.GetRequiredService<IServer>().Features.Get<IServerAddressesFeature>()!.Addresses.Single();
        context.Web = new Uri(address.Replace("127.0.0.1", "localhost", StringComparison.Ordinal));
        return new WebServer(application, file);
    }

    public async ValueTask DisposeAsync()
    {
        await _application.StopAsync(new CancellationToken(true));
        await _application.DisposeAsync();
        File.Delete(_file);
    }

    private static void Map(WebApplication routes, SoakContext context, string file, string fileHash)
    {
        routes.MapGet("/bytes/{count:int}", async (HttpContext http, int count) =>
        {
            ReadOnlyMemory<byte> payload = Payload.Take(Random.Shared, count);
            http.Response.Headers[HashHeader] = Payload.Hash(payload.Span);
            http.Response.ContentLength = count;
            if (context.Sabotage.IsDue(Fault.Byte) && count > 0)
            {
                byte[] wrong = payload.ToArray();
                wrong[count / 2] ^= 1;
                payload = wrong;
            }

            await http.Response.Body.WriteAsync(payload, http.RequestAborted);
        });
        routes.MapGet("/file", async (HttpContext http) =>
        {
            http.Response.Headers[HashHeader] = fileHash;
            http.Response.ContentLength = FileSize;
            await http.Response.SendFileAsync(file, http.RequestAborted);
        });
        routes.MapPost("/verify", async (HttpContext http) =>
        {
            using MemoryStream body = new();
            await http.Request.Body.CopyToAsync(body, http.RequestAborted);
            return Payload.Hash(body.ToArray());
        });
        routes.MapPost("/call", EchoAsync);
    }

    /// <summary>Returns each message. Both ends verify it by its hash.</summary>
    private static async Task EchoAsync(HttpContext http)
    {
        http.Features.Get<IHttpMaxRequestBodySizeFeature>()!.MaxRequestBodySize = null;
        http.Response.ContentType = "application/grpc";
        await http.Response.Body.FlushAsync(http.RequestAborted);
        int messages = 0;
        for (; await Frame.ReadAsync(http.Request.Body, http.RequestAborted) is { } message; messages++)
        {
            await http.Response.Body.WriteAsync(Frame.Create(message), http.RequestAborted);
            await http.Response.Body.FlushAsync(http.RequestAborted);
        }

        http.Response.AppendTrailer("messages", messages.ToString(System.Globalization.CultureInfo.InvariantCulture));
    }
}

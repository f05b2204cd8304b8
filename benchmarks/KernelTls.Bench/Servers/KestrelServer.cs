using System.Diagnostics;
using System.Net;
using KernelTls.Bench.Generators;
using KernelTls.Bench.Modes;
using Microsoft.AspNetCore.Builder;
using Microsoft.AspNetCore.Hosting;
using Microsoft.AspNetCore.Http;
using Microsoft.AspNetCore.Server.Kestrel.Core;
using Microsoft.Extensions.Hosting;
using Microsoft.Extensions.Logging;

namespace KernelTls.Bench.Servers;

/// <summary>
/// Runs Kestrel as an application does, either with a route for each file and for what load generators request, or as a
/// reverse proxy. Like nginx here, it writes no log.
/// </summary>
internal static class KestrelServer
{
    public const string Listening = "listening";

    /// <summary>Describes the process that runs <see cref="RunAsync"/>.</summary>
    /// <param name="mode">The mode of the server.</param>
    /// <param name="files">The files and the certificate.</param>
    /// <param name="port">The port on which the server listens.</param>
    /// <param name="upstream">The port to which requests are forwarded, or null if the server serves the files.</param>
    public static ProcessStartInfo Describe(string mode, ServedFiles files, int port, int? upstream)
    {
        string[] behind = upstream is null ? [] : [$"http://127.0.0.1:{upstream}"];
        return BenchProcess.DescribeChild([BenchCommand.Serve, mode, files.FullName, $"{port}", .. behind]);
    }

    /// <param name="mode">The mode of the server.</param>
    /// <param name="directory">The directory of <see cref="ServedFiles"/>.</param>
    /// <param name="port">The port on which the server listens.</param>
    /// <param name="upstream">
    /// The address to which requests are forwarded, or null if the server serves the files.
    /// </param>
    /// <param name="cancellationToken">A token that stops the server.</param>
    public static async Task RunAsync(string mode, string directory, int port, Uri? upstream, CancellationToken cancellationToken)
    {
        Mode server = ModeTable.Create(mode, BenchCertificates.ReadFrom(directory), resume: true);
        WebApplicationBuilder builder = WebApplication.CreateSlimBuilder();
        builder.Logging.ClearProviders();
        builder.WebHost.UseKestrelHttpsConfiguration().ConfigureKestrel(options =>
            options.Listen(IPAddress.Loopback, port, endpoint =>
            {
                server.ConfigureEndpoint(endpoint);
            }));
        server.ConfigureServer(builder.WebHost);
        await using WebApplication application = builder.Build();
        if (upstream is null)
        {
            MapFiles(application, ServedFiles.RootIn(directory));
            GeneratorServer.Map(application);
        }
        else
        {
            MapProxy(application, upstream);
        }

        await application.StartAsync(cancellationToken);
        await Console.Error.WriteLineAsync(Listening);
        await application.WaitForShutdownAsync(cancellationToken);
    }

    private static void MapFiles(WebApplication application, string root)
    {
        foreach (string path in Directory.GetFiles(root))
        {
            application.MapGet($"/{Path.GetFileName(path)}", () => Results.File(path, "application/octet-stream"));
        }
    }

    private static void MapProxy(WebApplication application, Uri upstream)
    {
        HttpMessageInvoker client = new(new SocketsHttpHandler { AllowAutoRedirect = false, UseCookies = false, UseProxy = false });
        application.MapGet("/{**path}", async context =>
        {
            using HttpRequestMessage request = new(HttpMethod.Get, new Uri(upstream, context.Request.Path));
            using HttpResponseMessage response = await client.SendAsync(request, context.RequestAborted);
            context.Response.StatusCode = (int)response.StatusCode;
            context.Response.ContentLength = response.Content.Headers.ContentLength;
            await response.Content.CopyToAsync(context.Response.Body, context.RequestAborted);
        });
    }
}

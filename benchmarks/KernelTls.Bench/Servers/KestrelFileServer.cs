using System.Net;
using KernelTls.Bench.Modes;
using Microsoft.AspNetCore.Builder;
using Microsoft.AspNetCore.Hosting;
using Microsoft.AspNetCore.Http;
using Microsoft.AspNetCore.Server.Kestrel.Core;
using Microsoft.Extensions.Hosting;
using Microsoft.Extensions.Logging;

namespace KernelTls.Bench.Servers;

/// <summary>Kestrel on HTTP/1.1 with a route for each file, as an application has it; like nginx here, without a log.</summary>
internal static class KestrelFileServer
{
    public static async Task RunAsync(string mode, string directory, int port, CancellationToken cancellationToken)
    {
        Mode server = ModeTable.Create(mode, BenchCertificates.ReadFrom(directory), resume: true);
        WebApplicationBuilder builder = WebApplication.CreateSlimBuilder();
        builder.Logging.ClearProviders();
        builder.WebHost.UseKestrelHttpsConfiguration().ConfigureKestrel(options =>
            options.Listen(IPAddress.Loopback, port, endpoint =>
            {
                endpoint.Protocols = HttpProtocols.Http1;
                server.ConfigureEndpoint(endpoint);
            }));
        server.ConfigureServer(builder.WebHost);
        await using WebApplication application = builder.Build();
        foreach (string path in Directory.GetFiles(ServedFiles.RootIn(directory)))
        {
            application.MapGet($"/{Path.GetFileName(path)}", () => Results.File(path, "application/octet-stream"));
        }

        await application.StartAsync(cancellationToken);
        await Console.Error.WriteLineAsync(ServerProcess.Listening);
        await application.WaitForShutdownAsync(cancellationToken);
    }
}

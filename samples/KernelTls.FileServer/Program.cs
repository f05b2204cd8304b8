// Serves the files of a directory over HTTPS on kernel TLS. The page at / shows the data paths of each connection live.
//
//   dotnet run -- --directory /srv/files --address 127.0.0.1 --port 8443
using System.Net;
using KernelTls;
using KernelTls.AspNetCore;
using KernelTls.FileServer;
using Microsoft.Extensions.FileProviders;

WebApplicationBuilder builder = WebApplication.CreateBuilder(args);
ConfigurationManager configuration = builder.Configuration;
OpenConnections connections = new();

builder.WebHost.UseKernelTls().ConfigureKestrel(kestrel => kestrel.Listen(
    IPAddress.Parse(configuration["address"] ?? "127.0.0.1"),
    configuration.GetValue("port", 8443),
    endpoint =>
    {
        endpoint.UseHttps(https =>
        {
            if (!configuration.GetSection("Kestrel:Certificates:Default").Exists())
            {
                https.ServerCertificate = SelfSigned.Create();
            }
        });
        endpoint.Use(connections.Track);
    }));
builder.Services.AddDirectoryBrowser();

WebApplication application = builder.Build();
application.MapGet("/", () => Results.File(Path.Combine(AppContext.BaseDirectory, "status.html"), "text/html"));
application.MapGet("/status", () => new { Connections = connections.Describe(), Kernel = TlsStat.Read() ?? [] });
application.UseFileServer(new FileServerOptions
{
    RequestPath = "/files",
    FileProvider = new PhysicalFileProvider(Path.GetFullPath(configuration["directory"] ?? ".")),
    EnableDirectoryBrowsing = true,
    StaticFileOptions = { ServeUnknownFileTypes = true },
});
application.Run();

// A web application that only references the package. It reports the data paths of its connections, as a server and as
// a client of IHttpClientFactory. Its /plain uses an HttpClient that the package does not affect. With --services it
// prints the registered services and exits.
using KernelTls;
using KernelTls.AspNetCore;

WebApplicationBuilder builder = WebApplication.CreateBuilder(args);
string transport = "";
builder.Services.AddHttpClient("").ConfigurePrimaryHttpMessageHandler(() => new SocketsHttpHandler
{
    SslOptions = { RemoteCertificateValidationCallback = (_, _, _, _) => true },
    PlaintextStreamFilter = (context, _) =>
    {
        transport = (context.PlaintextStream as KtlsStream)?.Offload.ToString() ?? "stock";
        return ValueTask.FromResult(context.PlaintextStream);
    },
});
if (args.Contains("--services"))
{
    foreach (ServiceDescriptor service in builder.Services)
    {
        Console.WriteLine($"{service.Lifetime} {service.ServiceType} {service.ImplementationType} {service.ImplementationInstance?.GetType()}");
    }

    return;
}

WebApplication application = builder.Build();
application.MapGet("/", (HttpContext context) => context.Features.Get<IKtlsFeature>()?.Offload.ToString() ?? "stock");
application.MapGet("/client", async (HttpContext context, IHttpClientFactory clients) =>
{
    using HttpClient client = clients.CreateClient();
    await client.GetStringAsync($"https://{context.Request.Host}/");
    return transport;
});
application.MapGet("/plain", async (HttpContext context) =>
{
    using HttpClient client = new(new HttpClientHandler { ServerCertificateCustomValidationCallback = (_, _, _, _) => true });
    return await client.GetStringAsync($"https://{context.Request.Host}/");
});
application.Run();

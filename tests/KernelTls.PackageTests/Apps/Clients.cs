// A web application that does nothing for kernel TLS but reference the package; it tells what it got, as a server and by its
// IHttpClientFactory. With --services it prints what is registered, and ends.
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
application.Run();

// A web application that does nothing for kernel TLS but reference the package; it tells what it got. Its certificate comes
// from the configuration. With --services it prints what is registered, and ends.
using KernelTls;
using KernelTls.AspNetCore;
using Microsoft.AspNetCore.Hosting.Server;
using Microsoft.AspNetCore.Hosting.Server.Features;

WebApplicationBuilder builder = WebApplication.CreateBuilder(args);
builder.Logging.ClearProviders();
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
await application.StartAsync();
Console.WriteLine(application.Services.GetRequiredService<IServer>().Features.Get<IServerAddressesFeature>()!.Addresses.Single());

// Until the test closes standard input.
await Console.In.ReadToEndAsync();
await application.StopAsync();

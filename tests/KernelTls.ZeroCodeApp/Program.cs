// A web application that knows nothing of kernel TLS: it only references the package. Its certificate comes from the
// configuration. With --services it prints what is registered, and ends.
using Microsoft.AspNetCore.Hosting.Server;
using Microsoft.AspNetCore.Hosting.Server.Features;

WebApplicationBuilder builder = WebApplication.CreateBuilder(args);
builder.Logging.ClearProviders();
if (args.Contains("--services"))
{
    foreach (ServiceDescriptor service in builder.Services)
    {
        Console.WriteLine($"{service.Lifetime} {service.ServiceType} {service.ImplementationType} {service.ImplementationInstance?.GetType()}");
    }

    return;
}

WebApplication application = builder.Build();
application.MapGet("/", (HttpContext context) => string.Join('\n', context.Features
    .Where(f => f.Key.FullName == "KernelTls.AspNetCore.IKtlsFeature")
    .Select(f => f.Key.GetProperty("Offload")!.GetValue(f.Value)!.ToString())
    .DefaultIfEmpty("stock")));
await application.StartAsync();
Console.WriteLine(application.Services.GetRequiredService<IServer>().Features.Get<IServerAddressesFeature>()!.Addresses.Single());

// Until the test closes standard input.
await Console.In.ReadToEndAsync();
await application.StopAsync();

// A web application that does nothing for kernel TLS but reference the package; it tells what it got. Its certificate comes
// from the configuration. With --services it prints what is registered, and ends.
using KernelTls.AspNetCore;
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
application.MapGet("/", (HttpContext context) => context.Features.Get<IKtlsFeature>()?.Offload.ToString() ?? "stock");
await application.StartAsync();
Console.WriteLine(application.Services.GetRequiredService<IServer>().Features.Get<IServerAddressesFeature>()!.Addresses.Single());

// Until the test closes standard input.
await Console.In.ReadToEndAsync();
await application.StopAsync();

// A worker: a host without a web server, whose client is one of IHttpClientFactory. It knows nothing of kernel TLS.
HostApplicationBuilder builder = Host.CreateApplicationBuilder(args);
builder.Services.AddHttpClient();
using IHost host = builder.Build();
await host.StartAsync();
using HttpClient client = host.Services.GetRequiredService<IHttpClientFactory>().CreateClient();
Console.WriteLine(await client.GetStringAsync(Environment.GetEnvironmentVariable("PEER")));

// Some applications look at all types of all assemblies.
Console.WriteLine(AppDomain.CurrentDomain.GetAssemblies().Sum(a => a.GetTypes().Length) > 0);
await host.StopAsync();

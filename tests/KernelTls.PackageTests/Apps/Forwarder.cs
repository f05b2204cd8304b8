// A reverse proxy to the address in the environment. It knows nothing of kernel TLS.
WebApplicationBuilder builder = WebApplication.CreateBuilder(args);
builder.Services.AddHttpForwarder();
WebApplication application = builder.Build();
application.MapForwarder("/{**rest}", Environment.GetEnvironmentVariable("PEER")!);
application.Run();

// A web application on the slim builder, whose endpoints have HTTPS as its documentation says. It knows nothing of kernel TLS.
WebApplicationBuilder builder = WebApplication.CreateSlimBuilder(args);
builder.WebHost.UseKestrelHttpsConfiguration();
WebApplication application = builder.Build();
application.MapGet("/", () => "Hello World!");
application.Run();

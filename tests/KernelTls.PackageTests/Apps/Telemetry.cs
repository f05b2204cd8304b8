// An application with agents that listen to hosts, servers and clients. It knows nothing of kernel TLS.
using OpenTelemetry.Trace;

WebApplicationBuilder builder = WebApplication.CreateBuilder(args);
builder.Services.AddOpenTelemetry()
    .WithTracing(traces => traces.AddAspNetCoreInstrumentation().AddHttpClientInstrumentation().AddConsoleExporter());
builder.Services.AddApplicationInsightsTelemetry(options =>
    options.ConnectionString = "InstrumentationKey=00000000-0000-0000-0000-000000000000;IngestionEndpoint=http://127.0.0.1:9/");
WebApplication application = builder.Build();
application.MapGet("/", () => "Hello World!");
application.Run();

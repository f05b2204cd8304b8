// A plain web application whose start fails in the way that its first argument names, or that its other arguments and the environment
// bring about. It knows nothing of kernel TLS.
using System.Net;

string way = args[0];
if (way == "main")
{
    throw new InvalidOperationException("on purpose");
}

WebApplicationBuilder builder = WebApplication.CreateBuilder(args[1..]);
switch (way)
{
    case "kestrel":
        builder.WebHost.ConfigureKestrel(_ => throw new InvalidOperationException("on purpose"));
        break;
    case "address":
        builder.WebHost.ConfigureKestrel(o => o.Listen(IPAddress.Parse("192.0.2.1"), 443));
        break;
    case "socket":
        builder.WebHost.ConfigureKestrel(o => o.ListenUnixSocket("/nowhere/socket"));
        break;
    case "filter":
        builder.Services.AddSingleton<IStartupFilter, FailingFilter>();
        break;
    case "service":
        builder.Services.AddHostedService<FailingService>();
        break;
    case "dependency":
        builder.Services.AddSingleton<IStartupFilter>(s => s.GetRequiredService<FailingFilter>());
        break;
    case "option":
        builder.Services.AddOptions<List<string>>().Validate(_ => false, "on purpose").ValidateOnStart();
        break;
    case "background":
        builder.Services.AddHostedService<FailingWorker>();
        break;
}

WebApplication application = builder.Build();
application.MapGet("/", () => "Hello");
switch (way)
{
    case "routes":
        application.MapGet(way + "{", () => "Hello");
        break;
    case "started":
        application.Lifetime.ApplicationStarted.Register(() => throw new InvalidOperationException("on purpose"));
        application.Lifetime.ApplicationStarted.Register(application.Lifetime.StopApplication);
        break;
    case "stop":
        application.Lifetime.ApplicationStarted.Register(application.Lifetime.StopApplication);
        break;
}

// As application.Run(), but that the worker fails only when all of the start has been logged.
try
{
    await application.StartAsync();
    FailingWorker.Failure.SetException(new InvalidOperationException("on purpose"));
    await application.WaitForShutdownAsync();
}
finally
{
    await application.DisposeAsync();
}

internal sealed class FailingFilter : IStartupFilter
{
    public Action<IApplicationBuilder> Configure(Action<IApplicationBuilder> next) => throw new InvalidOperationException("on purpose");
}

internal sealed class FailingService : IHostedService
{
    public Task StartAsync(CancellationToken cancellationToken) => throw new InvalidOperationException("on purpose");

    public Task StopAsync(CancellationToken cancellationToken) => Task.CompletedTask;
}

internal sealed class FailingWorker : BackgroundService
{
    public static TaskCompletionSource Failure { get; } = new();

    protected override Task ExecuteAsync(CancellationToken stoppingToken) => Failure.Task;
}

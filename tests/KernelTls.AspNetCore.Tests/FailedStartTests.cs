using System.Collections.Concurrent;
using System.Net;
using System.Net.Sockets;
using KernelTls.Tests;
using Microsoft.AspNetCore.Builder;
using Microsoft.AspNetCore.Hosting;
using Microsoft.AspNetCore.Server.Kestrel.Core;
using Microsoft.Extensions.Configuration;
using Microsoft.Extensions.DependencyInjection;
using Microsoft.Extensions.Hosting;
using Microsoft.Extensions.Logging;

namespace KernelTls.AspNetCore.Tests;

/// <summary>Tests that a start that fails throws and logs exactly what it does without this library.</summary>
/// <remarks>BrokenStartTests of the package tests starts published applications in more ways, as processes.</remarks>
public class FailedStartTests
{
    /// <summary>Gets the ways in which a start fails. Each receives the application's builder and the port that it is to listen on.</summary>
    private static readonly Dictionary<string, Action<WebApplicationBuilder, int>> s_ways = new()
    {
        ["port in use"] = (_, _) => { },
        ["unknown address"] = (builder, _) => builder.WebHost.ConfigureKestrel(o => o.Listen(IPAddress.Parse("192.0.2.1"), 0)),
        ["no certificate"] = (builder, _) => Endpoint(builder, "https://127.0.0.1:0", certificate: null),
        ["certificate is missing"] = (builder, _) => Endpoint(builder, "https://127.0.0.1:0", "/nowhere/certificate.pem"),
        ["malformed URL"] = (builder, _) => Endpoint(builder, "https://127.0.0.1:port", certificate: null),
        ["endpoint without URL"] = (builder, _) => Endpoint(builder, "", certificate: null),
        ["option of Kestrel"] = (builder, _) => builder.WebHost.ConfigureKestrel(_ => throw new InvalidOperationException("on purpose")),
        ["invalid option"] = (builder, _) => builder.Services.AddOptions<List<string>>().Validate(_ => false, "on purpose").ValidateOnStart(),
        ["startup filter"] = (builder, _) => builder.Services.AddSingleton<IStartupFilter, FailingFilter>(),
        ["hosted service"] = (builder, _) => builder.Services.AddHostedService(_ => new FailingService(whenBuilt: false)),
        ["hosted service's constructor"] = (builder, _) => builder.Services.AddHostedService(_ => new FailingService(whenBuilt: true)),
        ["missing service"] = (builder, _) => builder.Services.AddHostedService<UnresolvableService>(),
    };

    /// <summary>The ways in which the hosted services cannot be created.</summary>
    private static readonly string[] s_withoutServices = ["hosted service's constructor", "missing service"];

    public static TheoryData<TlsMode, string> Ways =>
        [.. from mode in Modes.OnOpenSsl from way in s_ways.Keys select new TheoryDataRow<TlsMode, string>(mode, way)];

    [Theory]
    [MemberData(nameof(Ways))]
    public async Task A_failed_start_is_that_of_the_application_without_this_library(TlsMode mode, string way) =>
        _ = await SideBySide.RunAsync(mode, async actual => string.Join('\n', await FailAsync(way, actual)), way);

    /// <summary>Returns what the start of an application throws and logs, until nothing of it runs any more.</summary>
    private static async Task<string[]> FailAsync(string way, TlsMode mode)
    {
        using Socket occupied = new(AddressFamily.InterNetwork, SocketType.Stream, ProtocolType.Tcp);
        occupied.Bind(new IPEndPoint(IPAddress.Loopback, 0));
        occupied.Listen();
        int port = ((IPEndPoint)occupied.LocalEndPoint!).Port;
        Server.Log log = new();
        WebApplicationBuilder builder = WebApplication.CreateEmptyBuilder(new WebApplicationOptions());
        builder.Logging.AddProvider(log).SetMinimumLevel(LogLevel.Information);
        builder.WebHost.UseKestrelCore().UseKestrelHttpsConfiguration();
        if (mode != TlsMode.Stock)
        {
            builder.WebHost.UseKernelTls(options =>
            {
                options.Mode = Modes.OptionsOf(mode).Mode;
                options.Fallback = Modes.OptionsOf(mode).Fallback;
            });
        }

        s_ways[way](builder, port);
        builder.WebHost.ConfigureKestrel(o => o.Listen(IPAddress.Loopback, port, endpoint => endpoint.UseHttps(Certificates.Ecdsa)));
        WebApplication? application = null;
        Exception failure = await Assert.ThrowsAnyAsync<Exception>(() => (application = builder.Build()).StartAsync()).InTime("the start to fail");
        BackgroundService[] running = application is null || s_withoutServices.Contains(way)
            ? []
            : [.. application.Services.GetServices<IHostedService>().OfType<BackgroundService>().Where(s => s.ExecuteTask is not null)];
        await (application?.DisposeAsync() ?? ValueTask.CompletedTask);
        foreach (BackgroundService service in running)
        {
            // The host logs one that fails or is canceled as critical, on another thread.
            await Assert.IsType<Task>(service.ExecuteTask, exactMatch: false).ContinueWith(_ => { }, TaskScheduler.Default).InTime($"{service} to end");
            Assert.True(service.ExecuteTask!.IsCompletedSuccessfully, $"{service}: {service.ExecuteTask.Status}");
        }

        string Without(string text) => text.Replace($":{port}", ":PORT", StringComparison.Ordinal);
        return
        [
            Without($"{failure.GetType()}: {failure.Message}"),
            .. log.Entries.Where(e => !IsOfEndpoint(e)).Select(e => Without($"{e.Level} {e.Category}: {e.Message} {e.Exception?.GetType()}")),
        ];
    }

    /// <summary>Returns whether an entry tells what an endpoint uses, which is logged before it is bound.</summary>
    private static bool IsOfEndpoint(Server.Log.Entry entry) => entry is { Level: LogLevel.Information, Category: "KernelTls.AspNetCore.Tls.TlsMiddleware" };

    private static void Endpoint(WebApplicationBuilder builder, string url, string? certificate)
    {
        builder.Configuration.AddInMemoryCollection([
            new("Kestrel:Endpoints:Public:Url", url),
            .. certificate is null ? (KeyValuePair<string, string?>[])[] : [new("Kestrel:Endpoints:Public:Certificate:Path", certificate)],
        ]);
        builder.WebHost.ConfigureKestrel(o => o.Configure(builder.Configuration.GetSection("Kestrel")));
    }

    private sealed class FailingFilter : IStartupFilter
    {
        public Action<IApplicationBuilder> Configure(Action<IApplicationBuilder> next) => throw new InvalidOperationException("on purpose");
    }

    private sealed class FailingService : IHostedService
    {
        public FailingService(bool whenBuilt)
        {
            if (whenBuilt)
            {
                throw new InvalidOperationException("on purpose");
            }
        }

        public Task StartAsync(CancellationToken cancellationToken) => throw new InvalidOperationException("on purpose");

        public Task StopAsync(CancellationToken cancellationToken) => Task.CompletedTask;
    }

    private sealed class UnresolvableService(ConcurrentQueue<FailingService> absent) : BackgroundService
    {
        protected override Task ExecuteAsync(CancellationToken stoppingToken) => Task.FromResult(absent);
    }
}

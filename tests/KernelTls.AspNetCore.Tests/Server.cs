using System.Collections.Concurrent;
using System.Net;
using System.Net.Security;
using System.Net.Sockets;
using System.Security.Authentication;
using KernelTls.Diagnostics;
using KernelTls.Tests;
using Microsoft.AspNetCore.Builder;
using Microsoft.AspNetCore.Hosting;
using Microsoft.AspNetCore.Hosting.Server;
using Microsoft.AspNetCore.Hosting.Server.Features;
using Microsoft.AspNetCore.Server.Kestrel;
using Microsoft.AspNetCore.Server.Kestrel.Core;
using Microsoft.AspNetCore.Server.Kestrel.Https;
using Microsoft.Extensions.Configuration;
using Microsoft.Extensions.DependencyInjection;
using Microsoft.Extensions.Logging;

namespace KernelTls.AspNetCore.Tests;

/// <summary>Runs Kestrel with an https and a plain http endpoint on loopback, in one of the modes.</summary>
internal sealed class Server : IAsyncDisposable
{
    private readonly WebApplication _application;

    private Server(WebApplication application, Log log)
    {
        _application = application;
        Events = log;
        foreach (string address in application.Services.GetRequiredService<IServer>().Features.Get<IServerAddressesFeature>()!.Addresses)
        {
            if (Uri.TryCreate(address, UriKind.Absolute, out Uri? uri) && uri.Port > 0)
            {
                LastHttps = uri.Scheme == "https" ? uri : LastHttps;
                Https ??= LastHttps;
                Http = uri.Scheme == "http" ? uri : Http;
            }
        }
    }

    public Uri Https { get; } = null!;

    /// <summary>Gets the last https endpoint, if there are several.</summary>
    public Uri LastHttps { get; } = null!;

    public Uri Http { get; } = null!;

    public Log Events { get; }

    /// <summary>
    /// Gets or sets a value that indicates whether the test makes the application fail. Otherwise no error may be
    /// logged.
    /// </summary>
    public bool FailsOnPurpose { get; set; }

    public IServiceProvider Services => _application.Services;

    public static Task<Server> StartAsync(
        TlsMode mode,
        Action<HttpsConnectionAdapterOptions>? https = null,
        Action<ListenOptions>? listen = null,
        Action<KestrelServerOptions>? kestrel = null,
        Action<WebApplicationBuilder>? builder = null,
        Action<WebApplication>? application = null) =>
        StartAsync(
            mode,
            options =>
            {
                options.Listen(IPAddress.Loopback, 0, endpoint =>
                {
                    listen?.Invoke(endpoint);
                    endpoint.UseHttps(Certificates.Ecdsa, adapter =>
                    {
                        adapter.HandshakeTimeout = Limits.Wait;
                        https?.Invoke(adapter);
                    });
                });
                options.Listen(IPAddress.Loopback, 0, endpoint => endpoint.Protocols = HttpProtocols.Http1);
                kestrel?.Invoke(options);
            },
            builder,
            application);

    /// <summary>Starts a server with the caller's endpoints.</summary>
    public static async Task<Server> StartAsync(
        TlsMode mode,
        Action<KestrelServerOptions> kestrel,
        Action<WebApplicationBuilder>? configure,
        Action<WebApplication>? configureApplication = null)
    {
        Log log = new();
        WebApplicationBuilder builder = WebApplication.CreateEmptyBuilder(new WebApplicationOptions());
        builder.Logging.AddProvider(log).SetMinimumLevel(LogLevel.Debug);
        builder.WebHost.UseKestrelCore().UseKestrelHttpsConfiguration().ConfigureKestrel(options =>
        {
            // The server's default limits are not for emulated machines. The tests have their own.
            options.Limits.MaxRequestBodySize = null;
            options.Limits.MinResponseDataRate = options.Limits.MinRequestBodyDataRate = null;
            options.Limits.RequestHeadersTimeout = options.Limits.KeepAliveTimeout = Limits.Wait;
            kestrel(options);
        });
        if (mode != TlsMode.Stock)
        {
            builder.WebHost.UseKernelTls(options =>
            {
                KtlsOptions wanted = Modes.OptionsOf(mode);
                options.Mode = wanted.Mode;
                options.Fallback = wanted.Fallback;
            });
        }

        builder.Services.AddRoutingCore();
        builder.Services.AddTransient<IStartupFilter, StockStreams>();
        configure?.Invoke(builder);
        WebApplication application = builder.Build();
        application.UseRouting();
        Endpoints.Map(application);
        configureApplication?.Invoke(application);
        try
        {
            await application.StartAsync().InTime("Kestrel to start");
        }
        catch
        {
            await application.DisposeAsync();
            throw;
        }

        return new Server(application, log);
    }

    /// <summary>Starts a server with https endpoints from the configuration, with these names.</summary>
    public static async Task<Server> StartConfiguredAsync(
        TlsMode mode, Action<KestrelConfigurationLoader> configure, params string[] endpoints)
    {
        using TemporaryDirectory directory = new();
        (string certificate, string key) = Certificates.WritePem(Certificates.Ecdsa, directory.FullName);
        Dictionary<string, string?> settings = endpoints.ToDictionary(
            name => $"Kestrel:Endpoints:{name}:Url", string? (_) => "https://127.0.0.1:0");
        settings["Kestrel:Certificates:Default:Path"] = certificate;
        settings["Kestrel:Certificates:Default:KeyPath"] = key;
        return await StartAsync(
            mode,
            options => configure(options.Configure(options.ApplicationServices.GetRequiredService<IConfiguration>().GetSection("Kestrel"))),
            builder => builder.Configuration.AddInMemoryCollection(settings));
    }

    /// <summary>
    /// Asserts that the log has exactly one warning: an endpoint uses the default TLS, the reason and the remedy.
    /// </summary>
    public void AssertOneWarning(KtlsFallbackReason reason)
    {
        Log.Entry entry = Assert.Single(Events.Entries, e => e.Level > LogLevel.Information);
        Assert.EndsWith($" uses the default SslStream-based TLS: {reason}. {Advice.On(reason)}", entry.Message, StringComparison.Ordinal);
    }

    /// <summary>Connects a stock SslStream without HTTP.</summary>
    public async Task<SslStream> ConnectAsync(
        SslProtocols version = SslProtocols.Tls13, Action<SslClientAuthenticationOptions>? configure = null, int? port = null)
    {
        Socket socket = await ConnectSocketAsync(port);
        SslStream stream = new(new NetworkStream(socket, ownsSocket: true));
        SslClientAuthenticationOptions options = Handshakes.ClientOptions(version);
        configure?.Invoke(options);
        await stream.AuthenticateAsClientAsync(options).InTime("the client's handshake");
        return stream;
    }

    public async Task<Socket> ConnectSocketAsync(int? port = null)
    {
        Socket socket = new(SocketType.Stream, ProtocolType.Tcp) { NoDelay = true };
        await socket.ConnectAsync(IPAddress.Loopback, port ?? Https.Port).InTime("a connection");
        return socket;
    }

    /// <summary>Creates a stock HttpClient that trusts the test authority.</summary>
    public static HttpClient CreateClient(string version = "1.1", Action<SocketsHttpHandler>? configure = null)
    {
        SocketsHttpHandler handler = new() { UseProxy = false };
        handler.SslOptions.CertificateChainPolicy = Certificates.Trust();
        configure?.Invoke(handler);
        return new HttpClient(handler)
        {
            DefaultRequestVersion = Version.Parse(version),
            DefaultVersionPolicy = HttpVersionPolicy.RequestVersionExact,
            Timeout = Limits.Wait,
        };
    }

    /// <summary>Returns a port that nothing uses, for an endpoint that is bound anew.</summary>
    public static int FreePort()
    {
        using Socket reserved = new(SocketType.Stream, ProtocolType.Tcp);
        reserved.Bind(new IPEndPoint(IPAddress.Loopback, 0));
        return ((IPEndPoint)reserved.LocalEndPoint!).Port;
    }

    public Task StopAsync(CancellationToken now = default) => _application.StopAsync(now);

    /// <summary>Stops the server, and writes to the test's output what happened to its endpoints.</summary>
    public async ValueTask DisposeAsync()
    {
        foreach (Log.Entry entry in Events.Entries.Where(e => e.Level >= LogLevel.Information && e.Category is "Microsoft.Hosting.Lifetime" or "Microsoft.AspNetCore.Server.Kestrel"))
        {
            TestContext.Current.TestOutputHelper?.WriteLine($"{entry.Level} {entry.Category}: {entry.Message}");
        }

        await _application.StopAsync(new CancellationToken(true));
        await _application.DisposeAsync();
        Assert.True(FailsOnPurpose || Events.Entries.All(e => e.Level < LogLevel.Error), string.Join('\n', Events.Entries));
    }

    /// <summary>
    /// Collects the server's log, except Kestrel's warning that its heartbeat was slow, which describes the machine.
    /// </summary>
    internal sealed class Log : ILoggerProvider
    {
        private readonly ConcurrentQueue<Entry> _entries = new();

        public IReadOnlyCollection<Entry> Entries => _entries;

        public ILogger CreateLogger(string categoryName) => new Category(categoryName, _entries);

        public void Dispose()
        {
        }

        /// <summary>Waits until there is such an entry.</summary>
        public async Task<Entry> WaitForAsync(Func<Entry, bool> condition, string what)
        {
            await WaitForAsync(condition, 1, what);
            return _entries.First(condition);
        }

        /// <summary>Waits until there are this many such entries.</summary>
        public async Task WaitForAsync(Func<Entry, bool> condition, int count, string what)
        {
            using PeriodicTimer timer = new(TimeSpan.FromMilliseconds(20));
            for (long deadline = Environment.TickCount64 + (long)Limits.Wait.TotalMilliseconds; ;)
            {
                if (_entries.Count(condition) >= count)
                {
                    return;
                }

                Assert.True(Environment.TickCount64 < deadline, $"Waited {Limits.Wait.TotalSeconds} s for {what}:\n{string.Join('\n', _entries)}");
                await timer.WaitForNextTickAsync();
            }
        }

        internal sealed record Entry(LogLevel Level, string Category, EventId Id, string Message, Exception? Exception);

        private sealed class Category(string name, ConcurrentQueue<Entry> entries) : ILogger
        {
            public IDisposable? BeginScope<TState>(TState state)
                where TState : notnull => null;

            public bool IsEnabled(LogLevel logLevel) => true;

            public void Log<TState>(
                LogLevel logLevel, EventId eventId, TState state, Exception? exception, Func<TState, Exception?, string> formatter)
            {
                if (eventId.Name != "HeartbeatSlow")
                {
                    entries.Enqueue(new Entry(logLevel, name, eventId, formatter(state, exception), exception));
                }
            }
        }
    }
}

using System.Collections.Concurrent;
using System.Net;
using System.Security.Authentication;
using KernelTls.AspNetCore;
using Microsoft.AspNetCore.Builder;
using Microsoft.AspNetCore.Connections;
using Microsoft.AspNetCore.Connections.Features;
using Microsoft.AspNetCore.Hosting;
using Microsoft.AspNetCore.Http;
using Microsoft.AspNetCore.Http.Features;

namespace KernelTls.Demo;

/// <summary>Serves one file by Kestrel on kernel TLS, on a port of 127.0.0.1 that the system chooses.</summary>
internal sealed class FileServer : IAsyncDisposable
{
    private const string Path = "/file";
    private static readonly TimeSpan s_stopLimit = TimeSpan.FromSeconds(10);

    private readonly WebApplication _application;
    private readonly PublishedFile _file;
    private readonly ConcurrentQueue<ConnectionFacts> _connections = [];
    private int _open;

    private FileServer(PublishedFile file, DemoCertificates certificates, SslProtocols protocol)
    {
        _file = file;
        WebApplicationBuilder builder = WebApplication.CreateEmptyBuilder(new WebApplicationOptions());
        builder.WebHost.UseKestrelCore().UseKestrelHttpsConfiguration();
        builder.WebHost.UseKernelTls(options => options.Mode = KtlsMode.Environment);
        builder.WebHost.ConfigureKestrel(kestrel => kestrel.Listen(IPAddress.Loopback, 0, endpoint =>
        {
            endpoint.UseHttps(https =>
            {
                https.ServerCertificate = certificates.Server;
                https.SslProtocols = protocol;
                https.HandshakeTimeout = TimeSpan.FromSeconds(60);
            });
            endpoint.Use(Note);
        }));
        _application = builder.Build();
        _application.Run(RespondAsync);
    }

    /// <summary>Gets the address of the file.</summary>
    public Uri Address => new($"https://localhost:{new Uri(_application.Urls.Single()).Port}{Path}");

    /// <summary>Gets the connections whose handshake succeeded, in that order.</summary>
    public IReadOnlyList<ConnectionFacts> Connections => [.. _connections];

    public static async Task<FileServer> StartAsync(
        PublishedFile file, DemoCertificates certificates, SslProtocols protocol, CancellationToken cancellationToken)
    {
        FileServer server = new(file, certificates, protocol);
        await server._application.StartAsync(cancellationToken);
        return server;
    }

    /// <summary>Accepts no more connections and waits until the open ones end.</summary>
    /// <exception cref="DemoFailedException">They did not end.</exception>
    public async Task StopAsync(CancellationToken cancellationToken)
    {
        using CancellationTokenSource limit = CancellationTokenSource.CreateLinkedTokenSource(cancellationToken);
        limit.CancelAfter(s_stopLimit);
        await _application.StopAsync(limit.Token);
        cancellationToken.ThrowIfCancellationRequested();
        if (Volatile.Read(ref _open) is > 0 and int open)
        {
            throw new DemoFailedException($"the server: {open} connections have not ended after {s_stopLimit.TotalSeconds} s");
        }
    }

    public ValueTask DisposeAsync() => _application.DisposeAsync();

    /// <summary>Runs after UseHttps: records the result of each handshake and the number of open connections.</summary>
    private ConnectionDelegate Note(ConnectionDelegate next) => async connection =>
    {
        ITlsHandshakeFeature tls = connection.Features.GetRequiredFeature<ITlsHandshakeFeature>();
        _connections.Enqueue(new ConnectionFacts(
            "server", tls.Protocol, tls.NegotiatedCipherSuite ?? default, connection.Features.Get<IKtlsFeature>()?.Offload));
        Interlocked.Increment(ref _open);
        try
        {
            await next(connection);
        }
        finally
        {
            Interlocked.Decrement(ref _open);
        }
    };

    private async Task RespondAsync(HttpContext context)
    {
        if (context.Request.Path != Path)
        {
            context.Response.StatusCode = StatusCodes.Status404NotFound;
            return;
        }

        context.Response.ContentType = "application/octet-stream";
        context.Response.ContentLength = _file.Length;
        await context.Response.SendFileAsync(_file.Path, 0, _file.Length, context.RequestAborted);
    }
}

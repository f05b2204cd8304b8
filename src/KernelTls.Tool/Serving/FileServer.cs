using System.Net;
using System.Net.Sockets;
using System.Security.Cryptography.X509Certificates;
using KernelTls.AspNetCore;
using Microsoft.AspNetCore.Builder;
using Microsoft.AspNetCore.Hosting;
using Microsoft.AspNetCore.Hosting.Server;
using Microsoft.AspNetCore.Hosting.Server.Features;
using Microsoft.AspNetCore.Server.Kestrel.Core;
using Microsoft.Extensions.DependencyInjection;
using Microsoft.Extensions.FileProviders;
using Microsoft.Extensions.Logging;
using Microsoft.Extensions.Logging.Console;

namespace KernelTls.Tool.Serving;

/// <summary>Serves the files of a directory over HTTPS.</summary>
internal sealed class FileServer : IAsyncDisposable
{
    private readonly PhysicalFileProvider _files;
    private readonly WebApplication _application;
    private readonly ServedConnections _connections;
    private readonly ServeReport _report;
    private readonly IPEndPoint _endPoint;
    private volatile bool _isListening;

    public FileServer(
        string directory, IPEndPoint endPoint, X509Certificate2 certificate, X509Certificate2Collection chain, ServeReport report)
    {
        (_report, _endPoint) = (report, endPoint);
        HandshakeFailures failures = new();
        _connections = new ServedConnections(report, failures);
        _files = new PhysicalFileProvider(directory);
        WebApplicationBuilder builder = WebApplication.CreateEmptyBuilder(new WebApplicationOptions());
        builder.Logging.AddSimpleConsole(o => o.SingleLine = true).SetMinimumLevel(LogLevel.Warning);


        // Why it cannot start is the command's error, without Kestrel's entries.
        builder.Logging.AddFilter<ConsoleLoggerProvider>(level => _isListening && level >= LogLevel.Warning);
        builder.Logging.AddProvider(failures).AddFilter<HandshakeFailures>(null, LogLevel.None)
            .AddFilter<HandshakeFailures>(HandshakeFailures.Category, LogLevel.Debug);
        builder.Services.Configure<ConsoleLoggerOptions>(o => o.LogToStandardErrorThreshold = LogLevel.Trace);
        builder.Services.AddDirectoryBrowser();
        builder.Services.AddRouting();
        builder.WebHost.UseKestrelCore().UseKestrelHttpsConfiguration().UseKernelTls().ConfigureKestrel(kestrel => kestrel.Listen(endPoint, listen =>
        {
            listen.Protocols = HttpProtocols.Http1AndHttp2;
            listen.Use(_connections.Accept);
            listen.UseHttps(https => (https.ServerCertificate, https.ServerCertificateChain) = (certificate, chain));
            listen.Use(_connections.Track);
        }));
        _application = builder.Build();
        _application.UseFileServer(new FileServerOptions
        {
            FileProvider = _files,
            EnableDirectoryBrowsing = true,
            StaticFileOptions = { ServeUnknownFileTypes = true },
        });
    }

    /// <summary>Serves until canceled, then waits for the current requests to end.</summary>
    /// <exception cref="ToolFailedException">The server cannot listen on the address, or its report cannot be written.</exception>
    public async Task RunAsync(CancellationToken cancellationToken)
    {
        try
        {
            await _application.StartAsync(cancellationToken);
        }
        catch (Exception e) when (e is IOException or SocketException or UnauthorizedAccessException)
        {
            throw new ToolFailedException(
                ExitCode.Failed, $"cannot listen on {_endPoint}: {e.Message.TrimEnd('.')}. Try another --port or --address. Ports below 1024 require privilege.", e);
        }

        IServerAddressesFeature addresses = _application.Services.GetRequiredService<IServer>().Features.Get<IServerAddressesFeature>()!;
        _isListening = true;
        _report.Listening(addresses.Addresses.Single(), _files.Root);
        await Task.WhenAny(Task.Delay(Timeout.Infinite, cancellationToken), _report.Failure);
        using CancellationTokenSource limit = new(ToolCommand.EndingTime / 2);
        await _application.StopAsync(limit.Token);
        _report.Stopped(_connections.Served);
        if (_report.Failure.IsCompleted)
        {
            throw await _report.Failure;
        }
    }

    public async ValueTask DisposeAsync()
    {
        await _application.DisposeAsync();
        _files.Dispose();
    }
}

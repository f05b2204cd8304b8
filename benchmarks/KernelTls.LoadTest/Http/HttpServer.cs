using System.Collections.Concurrent;
using System.Globalization;
using System.IO.Pipelines;
using System.Net;
using System.Net.Security;
using KernelTls.AspNetCore;
using KernelTls.LoadTest.Running;
using KernelTls.LoadTest.Tls;
using Microsoft.AspNetCore.Builder;
using Microsoft.AspNetCore.Connections;
using Microsoft.AspNetCore.Connections.Features;
using Microsoft.AspNetCore.Hosting;
using Microsoft.AspNetCore.Http;
using Microsoft.AspNetCore.Server.Kestrel.Core;
using Microsoft.Extensions.DependencyInjection;
using Microsoft.Extensions.FileProviders;

namespace KernelTls.LoadTest.Http;

/// <summary>Runs Kestrel with as few other components as possible.</summary>
internal sealed class HttpServer(HttpServerOptions options)
{
    /// <summary>
    /// The limit of a handshake. Kestrel's default assumes clients that may be hostile and machines that are not
    /// emulated.
    /// </summary>
    private static readonly TimeSpan s_handshakeTimeout = TimeSpan.FromMinutes(2);

    /// <summary>The largest size that a path may name.</summary>
    private const int LargestBody = 16 << 20;

    private readonly TlsChoice _tls = new();
    private readonly ConnectionTally _tally = new();
    private readonly WorkMeter _work = new();
    private readonly byte[] _body = new byte[options.ResponseSize];
    private readonly ConcurrentDictionary<int, byte[]> _bodies = [];
    private KtlsOffload? _fallback;

    public async Task RunAsync(CancellationToken cancellationToken)
    {
        IPAddress address = (await Dns.GetHostAddressesAsync(options.ServerAddress, cancellationToken))[0];
        string? directory = options.FileName is null ? null : Directory.CreateTempSubdirectory("kerneltls-load-test").FullName;
        try
        {
            await using WebApplication application = Build(address, directory);
            await application.StartAsync(cancellationToken);
            await Console.Out.WriteLineAsync($"Listening on {application.Urls.Single()}");
            await _tally.TellWhileAsync(_work, null, cancellationToken);
            await application.StopAsync(CancellationToken.None);
        }
        finally
        {
            if (directory is not null)
            {
                Directory.Delete(directory, recursive: true);
            }
        }
    }

    private WebApplication Build(IPAddress address, string? directory)
    {
        WebApplicationBuilder builder = WebApplication.CreateEmptyBuilder(new WebApplicationOptions());
        builder.WebHost.UseKestrelCore().UseKestrelHttpsConfiguration().ConfigureKestrel(kestrel =>
            kestrel.Listen(address, options.ServerPort, endpoint =>
            {
                endpoint.Protocols = options.HttpVersion.Major == 2 ? HttpProtocols.Http2 : HttpProtocols.Http1;
                if (options.UseHttps)
                {
                    endpoint.UseHttps(UntrustedCertificate.Create(), https => https.HandshakeTimeout = s_handshakeTimeout);
                }

                endpoint.Use(Count);
            }));
        if (options.HttpVersion.Major == 2)
        {
            EchoCall.AddTo(builder.Services, _body);
        }

        if (!_tls.IsStock)
        {
            builder.WebHost.UseKernelTls(_tls.Configure);
        }

        WebApplication application = builder.Build();
        if (!_tls.IsStock)
        {
            // For connections that Kestrel's TLS serves, report the same text as the stream of a client does.
            KtlsFallbackReason reason = application.Services.GetRequiredService<KernelTlsServer>().GetFallbackReason(_tls.Options);
            _fallback = new KtlsOffload(KtlsDataPath.Managed, reason, KtlsDataPath.Managed, reason);
        }

        application.Use(CountAsync);
        if (directory is not null)
        {
            File.WriteAllBytes(Path.Combine(directory, options.FileName!), new byte[options.SizeInBytes]);
            application.UseStaticFiles(new StaticFileOptions
            {
                FileProvider = new PhysicalFileProvider(directory),
                ServeUnknownFileTypes = true,
            });
        }

        if (options.HttpVersion.Major == 2)
        {
            EchoCall.MapTo(application);
        }

        application.Run(RespondAsync);
        return application;
    }

    private ConnectionDelegate Count(ConnectionDelegate next) => async connection =>
    {
        if (connection.Features.Get<ITlsHandshakeFeature>() is { } tls)
        {
            _tally.Add(connection.Features.Get<IKtlsFeature>()?.Offload ?? _fallback, tls.Protocol, tls.NegotiatedCipherSuite ?? default(TlsCipherSuite));
        }
        else
        {
            _tally.AddPlain();
        }

        try
        {
            await next(connection);
        }
        finally
        {
            _tally.End();
        }
    };

    private async Task CountAsync(HttpContext context, RequestDelegate next)
    {
        await next(context);
        _work.NoteOperation((context.Request.ContentLength ?? 0) + (context.Response.ContentLength ?? 0));
    }

    private async Task RespondAsync(HttpContext context)
    {
        bool isPost = context.Request.Method == HttpMethods.Post;
        if (FindBody(context.Request.Path.Value!, isPost) is not { } body)
        {
            context.Response.StatusCode = StatusCodes.Status404NotFound;
            return;
        }

        if (isPost)
        {
            await DrainAsync(context);
        }

        context.Response.ContentLength = body.Length;
        if (body.Length > 0)
        {
            await context.Response.Body.WriteAsync(body);
        }
    }

    /// <summary>Returns the body of a response, or null if there is no such path. The last segment of a path may be the size.</summary>
    private byte[]? FindBody(string path, bool isPost)
    {
        if (path == (isPost ? HttpLoad.PostPath : HttpLoad.GetPath))
        {
            return _body;
        }

        string sized = $"{HttpLoad.GetPath}/";
        return !isPost && path.StartsWith(sized, StringComparison.Ordinal)
            && int.TryParse(path.AsSpan(sized.Length), NumberStyles.None, CultureInfo.InvariantCulture, out int size) && size <= LargestBody
            ? _bodies.GetOrAdd(size, static size => new byte[size])
            : null;
    }

    private static async Task DrainAsync(HttpContext context)
    {
        while (true)
        {
            ReadResult read = await context.Request.BodyReader.ReadAsync();
            context.Request.BodyReader.AdvanceTo(read.Buffer.End);
            if (read.IsCompleted)
            {
                return;
            }
        }
    }
}

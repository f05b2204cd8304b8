using System.Net;
using System.Net.Security;
using System.Net.Sockets;
using System.Security.Authentication;
using KernelTls.Tests;
using Microsoft.AspNetCore.Builder;
using Microsoft.AspNetCore.Connections;
using Microsoft.AspNetCore.Hosting;
using Microsoft.AspNetCore.Hosting.Server;
using Microsoft.AspNetCore.Hosting.Server.Features;
using Microsoft.AspNetCore.Server.Kestrel.Core;
using Microsoft.AspNetCore.Server.Kestrel.Https;
using Microsoft.AspNetCore.Server.Kestrel.Transport.Sockets;
using Microsoft.Extensions.Configuration;
using Microsoft.Extensions.DependencyInjection;
using Microsoft.Extensions.Logging;

namespace KernelTls.AspNetCore.Tests;

/// <summary>
/// Tests endpoints however they are created, and those that use the default TLS, each with its reason.
/// </summary>
public class EndpointTests
{
    public static TheoryData<TlsMode> All => [.. Modes.Every];

    public static TheoryData<TlsMode> OnOpenSsl => [.. Modes.OnOpenSsl];

    [Theory]
    [MemberData(nameof(OnOpenSsl))]
    public async Task A_middleware_that_looks_at_the_bytes_keeps_the_stock_TLS(TlsMode mode)
    {
        await using Server server = await Server.StartAsync(mode, listen: endpoint => endpoint.UseConnectionLogging());
        using HttpClient client = Server.CreateClient();
        client.DefaultRequestHeaders.ConnectionClose = true;

        for (int i = 0; i < 3; i++)
        {
            await Offloads.AssertAsync(Offloads.Managed(KtlsFallbackReason.TransportInUse), client, server.Https);
        }

        server.AssertOneWarning(KtlsFallbackReason.TransportInUse);
    }

    /// <summary>Kestrel may abort a connection, as at a shutdown, while it is on its way to TLS.</summary>
    [Theory]
    [MemberData(nameof(OnOpenSsl))]
    public async Task A_connection_that_is_aborted_in_front_of_TLS_is_no_fallback(TlsMode mode)
    {
        await using Server server = await Server.StartAsync(mode, listen: endpoint => endpoint.Use((connection, next) =>
        {
            connection.Abort(new ConnectionAbortedException("on purpose"));
            return next();
        }));
        using HttpClient client = Server.CreateClient();

        // HttpClient reads the peer's address before its handshake. If the reset is faster, the socket's own error comes out.
        Exception seen = await Assert.ThrowsAnyAsync<Exception>(() => client.GetStringAsync(new Uri(server.Https, "/offload")).InTime("the failure"));
        Assert.True(seen is HttpRequestException or SocketException { SocketErrorCode: SocketError.NotConnected }, $"{seen}");

        await server.Events.WaitForAsync(e => e.Id.Name == "ConnectionStop", "the connection to stop");
        Assert.DoesNotContain(server.Events.Entries, e => e.Level > LogLevel.Information);
    }

    /// <summary>A connection that cannot use kernel TLS is served by the base class on the same transport.</summary>
    [Theory]
    [MemberData(nameof(OnOpenSsl))]
    public async Task A_connection_whose_options_only_SslStream_honours_is_served_by_it(TlsMode mode)
    {
        await using Server server = await Server.StartAsync(mode, https => https.OnAuthenticate = (_, options) => options.AllowRenegotiation = true);
        using HttpClient client = Server.CreateClient("2.0");

        Assert.Equal(
            "send=managed (Renegotiation) receive=managed (Renegotiation)",
            await client.GetStringAsync(new Uri(server.Https, "/offload")).InTime());
        Pattern.AssertAt(0, await client.GetByteArrayAsync(new Uri(server.Https, "/bytes/1000000")).InTime());
        using ByteArrayContent content = new(Pattern.Take(1_000_000));
        using HttpResponseMessage posted = await client.PostAsync(new Uri(server.Https, "/check"), content).InTime();
        Assert.Equal("1000000 HTTP/2", await posted.Content.ReadAsStringAsync().InTime());
    }

    /// <summary>
    /// UseHttps follows a middleware of the endpoint's own callback, so it was not visible when the steps were
    /// inserted.
    /// </summary>
    [Theory]
    [MemberData(nameof(OnOpenSsl))]
    public async Task An_endpoint_whose_UseHttps_is_not_found_says_so(TlsMode mode)
    {
        await using Server server = await Server.StartConfiguredAsync(
            mode,
            configuration => configuration.Endpoint(
                "Between", endpoint => endpoint.ListenOptions.Use(next => context => next(context))),
            "Between");
        using HttpClient client = Server.CreateClient();
        client.DefaultRequestHeaders.ConnectionClose = true;

        for (int i = 0; i < 3; i++)
        {
            Assert.Equal("stock", await client.GetStringAsync(new Uri(server.Https, "/offload")).InTime());
        }

        await server.Events.WaitForAsync(e => e.Level > LogLevel.Information, "the warning, which comes when a connection is closed");
        server.AssertOneWarning(KtlsFallbackReason.EndpointNotFound);
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task Middleware_that_does_not_is_no_hindrance(TlsMode mode)
    {
        int before = 0;
        int behind = 0;
        await using Server server = await Server.StartAsync(
            mode,
            options => options.Listen(IPAddress.Loopback, 0, endpoint =>
            {
                endpoint.Use(next => context =>
                {
                    Interlocked.Increment(ref before);
                    return next(context);
                });
                endpoint.UseHttps(Certificates.Ecdsa);
                endpoint.UseConnectionLogging();
                endpoint.Use(next => context =>
                {
                    Interlocked.Increment(ref behind);
                    return next(context);
                });
            }),
            configure: null);
        using HttpClient client = Server.CreateClient("2.0");

        await Offloads.AssertInAsync(mode, client, server.Https);

        Assert.Equal((1, 1), (before, behind));
        Assert.Contains(server.Events.Entries, e => e.Category.EndsWith("LoggingConnectionMiddleware", StringComparison.Ordinal));
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task Endpoints_of_the_configuration_and_their_defaults_are_served(TlsMode mode)
    {
        using TemporaryDirectory directory = new();
        (string certificate, string key) = Certificates.WritePem(Certificates.Ecdsa, directory.FullName);
        int defaults = 0;
        int httpsDefaults = 0;
        await using Server server = await Server.StartAsync(
            mode,
            options =>
            {
                options.ConfigureEndpointDefaults(_ => defaults++);
                options.ConfigureHttpsDefaults(https =>
                {
                    httpsDefaults++;
                    https.SslProtocols = SslProtocols.Tls13;
                });
                IConfiguration configuration = options.ApplicationServices.GetRequiredService<IConfiguration>();
                options.Configure(configuration.GetSection("Kestrel"));
            },
            builder => builder.Configuration.AddInMemoryCollection(new Dictionary<string, string?>
            {
                ["Kestrel:Endpoints:Secure:Url"] = "https://127.0.0.1:0",
                ["Kestrel:Endpoints:Secure:Certificate:Path"] = certificate,
                ["Kestrel:Endpoints:Secure:Certificate:KeyPath"] = key,
            }));
        using HttpClient client = Server.CreateClient("2.0");

        await Offloads.AssertInAsync(mode, client, server.Https);

        Assert.Equal((1, 1), (defaults, httpsDefaults));
        await Assert.ThrowsAsync<AuthenticationException>(() => server.ConnectAsync(SslProtocols.Tls12));
    }

    /// <summary>
    /// UseHttps in code makes Kestrel read the configuration, whose endpoints exist before the application's own are
    /// complete.
    /// </summary>
    [Theory]
    [MemberData(nameof(All))]
    public async Task Endpoints_of_the_configuration_beside_one_in_code_are_served(TlsMode mode)
    {
        using TemporaryDirectory directory = new();
        (string certificate, string key) = Certificates.WritePem(Certificates.Ecdsa, directory.FullName);
        await using Server server = await Server.StartAsync(
            mode,
            options =>
            {
                options.Configure(options.ApplicationServices.GetRequiredService<IConfiguration>().GetSection("Kestrel"));
                options.Listen(IPAddress.Loopback, 0, endpoint => endpoint.UseHttps(_ => { }));
            },
            builder => builder.Configuration.AddInMemoryCollection(new Dictionary<string, string?>
            {
                ["Kestrel:Endpoints:Secure:Url"] = "https://127.0.0.1:0",
                ["Kestrel:Certificates:Default:Path"] = certificate,
                ["Kestrel:Certificates:Default:KeyPath"] = key,
            }));
        using HttpClient client = Server.CreateClient("2.0");

        Assert.NotEqual(server.Https, server.LastHttps);
        await Offloads.AssertInAsync(mode, client, server.Https);
        await Offloads.AssertInAsync(mode, client, server.LastHttps);
        Assert.DoesNotContain(server.Events.Entries, e => e.Level > LogLevel.Information);
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task Urls_and_localhost_are_served(TlsMode mode)
    {
        using Socket reserved = new(SocketType.Stream, ProtocolType.Tcp);
        reserved.Bind(new IPEndPoint(IPAddress.Loopback, 0));
        int port = ((IPEndPoint)reserved.LocalEndPoint!).Port;
        reserved.Dispose();
        await using Server server = await Server.StartAsync(
            mode,
            options => options.ConfigureHttpsDefaults(https => https.ServerCertificate = Certificates.Ecdsa),
            builder => builder.WebHost.UseUrls($"https://localhost:{port}"));
        using HttpClient client = Server.CreateClient("2.0");

        await Offloads.AssertInAsync(mode, client, new Uri($"https://127.0.0.1:{port}"));
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task Unix_sockets_are_the_stock_transport_s(TlsMode mode)
    {
        using TemporaryDirectory directory = new();
        string path = directory["socket"];
        await using Server server = await Server.StartAsync(
            mode,
            options =>
            {
                options.ListenUnixSocket(path, endpoint => endpoint.UseHttps(Certificates.Ecdsa));
                options.ListenUnixSocket(path + "-plain");
            },
            configure: null);
        using HttpClient client = Server.CreateClient("1.1", handler => handler.ConnectCallback = async (context, cancellationToken) =>
        {
            Socket socket = new(AddressFamily.Unix, SocketType.Stream, ProtocolType.Unspecified);
            await socket.ConnectAsync(
                new UnixDomainSocketEndPoint(context.InitialRequestMessage.RequestUri!.Scheme == "https" ? path : path + "-plain"), cancellationToken);
            return new NetworkStream(socket, ownsSocket: true);
        });

        Assert.Equal(
            Modes.OnOpenSsl.Contains(mode) ? Offloads.Managed(KtlsFallbackReason.NotTcp) : "stock",
            await client.GetStringAsync(new Uri("https://localhost/offload")).InTime());
        Assert.Equal("stock", await client.GetStringAsync(new Uri("http://localhost/offload")).InTime());
        if (Modes.OnOpenSsl.Contains(mode))
        {
            server.AssertOneWarning(KtlsFallbackReason.NotTcp);
        }
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task The_options_of_the_socket_transport_apply(TlsMode mode)
    {
        List<EndPoint> bound = [];
        Socket? accepted = null;
        await using Server server = await Server.StartAsync(
            mode,
            https => https.OnAuthenticate = (connection, _) =>
                accepted = connection.Features.Get<Microsoft.AspNetCore.Connections.Features.IConnectionSocketFeature>()!.Socket,
            builder: builder => builder.WebHost.UseSockets(sockets =>
            {
                sockets.NoDelay = false;
                sockets.IOQueueCount = 0;
                sockets.WaitForDataBeforeAllocatingBuffer = false;
                sockets.CreateBoundListenSocket = endpoint =>
                {
                    bound.Add(endpoint);
                    return SocketTransportOptions.CreateDefaultBoundListenSocket(endpoint);
                };
            }));
        using HttpClient client = Server.CreateClient();

        Pattern.AssertAt(0, await client.GetByteArrayAsync(new Uri(server.Https, "/bytes/100000")).InTime());
        await Offloads.AssertInAsync(mode, client, server.Https);

        Assert.Equal(2, bound.Count);
        Assert.False(accepted!.NoDelay);
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task An_address_in_use_is_said_as_ever(TlsMode mode)
    {
        IOException e = await Assert.ThrowsAsync<IOException>(() => Server.StartAsync(mode, builder: builder => builder.WebHost.UseSockets(
            sockets => sockets.CreateBoundListenSocket = _ => throw new SocketException((int)SocketError.AddressAlreadyInUse))));

        Assert.IsType<AddressInUseException>(e.InnerException);
    }

    [Fact]
    public async Task What_is_required_and_not_to_be_had_stops_the_start()
    {
        using TemporaryDirectory directory = new();
        KtlsNotAvailableException e = await Assert.ThrowsAsync<KtlsNotAvailableException>(() => Server.StartAsync(
            TlsMode.Stock,
            options => options.ListenUnixSocket(directory["socket"], endpoint => endpoint.UseHttps(Certificates.Ecdsa)),
            builder => builder.WebHost.UseKernelTls(options => options.Mode = KtlsMode.Required)));

        Assert.Equal(
            KtlsPlatform.Probe().IsSupported ? KtlsFallbackReason.NotTcp : KtlsPlatform.Probe().NotSupportedReason, e.Reason);
    }

    [Fact]
    public async Task Switched_off_in_code_it_leaves_everything_as_it_is()
    {
        await using Server server = await Server.StartAsync(TlsMode.Managed);
        using HttpClient client = Server.CreateClient("2.0");

        Assert.Equal("stock", await client.GetStringAsync(new Uri(server.Https, "/offload")).InTime());

        Server.Log.Entry entry = Assert.Single(server.Events.Entries, e => e.Category.StartsWith("KernelTls", StringComparison.Ordinal));
        Assert.Equal(LogLevel.Debug, entry.Level);
    }
}

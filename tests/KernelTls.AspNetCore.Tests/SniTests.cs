using System.Net;
using System.Net.Security;
using System.Net.Sockets;
using System.Security.Authentication;
using System.Security.Cryptography.X509Certificates;
using System.Text;
using KernelTls.Tests;
using Microsoft.Extensions.Configuration;
using Microsoft.Extensions.DependencyInjection;
using Microsoft.Extensions.Logging;

namespace KernelTls.AspNetCore.Tests;

/// <summary>Tests the Sni section of an endpoint's configuration, compared with the stock server.</summary>
public sealed class SniTests : IDisposable
{
    private const string Endpoint = "Kestrel:Endpoints:Secure:";

    private static readonly List<SslApplicationProtocol> s_both = [SslApplicationProtocol.Http2, SslApplicationProtocol.Http11];

    private static readonly string[] s_names =
    [
        "localhost", "LocalHost", "a.wild.test", "A.B.wild.test", "a.deep.wild.test", "wild.test", "elsewhere.test", "127.0.0.1", "",
    ];

    private static readonly string[] s_unknown = ["elsewhere.test", ""];

    private readonly TemporaryDirectory _directory = new();

    public static TheoryData<TlsMode> All => [.. Modes.Every];

    public void Dispose() => _directory.Dispose();

    [Theory]
    [MemberData(nameof(All))]
    public async Task Each_name_gets_its_certificate_versions_protocols_and_certificate_mode(TlsMode mode)
    {
        await SideBySide.RunAsync(mode, async each =>
        {
            await using Server server = await StartAsync(each, [
                .. Host("localhost", Certificates.Ecdsa),
                KeyValuePair.Create("Sni:localhost:Protocols", "Http1"),
                .. Host("*.wild.test", Certificates.Rsa),
                KeyValuePair.Create("Sni:*.wild.test:SslProtocols:0", "Tls12"),
                .. Host("*.deep.wild.test", Certificates.WrongName),
                KeyValuePair.Create("Sni:*.deep.wild.test:Protocols", "Http2"),
                .. Host("*", Certificates.Expired),
                KeyValuePair.Create("Sni:*:ClientCertificateMode", "AllowCertificate"),
            ]);
            List<string> seen = [];
            foreach (string name in s_names)
            {
                seen.Add($"{name}: {await ConnectAsync(server, name)}");
            }

            return seen.ToArray();
        });
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task Requests_are_served_on_kernel_TLS(TlsMode mode)
    {
        await using Server server = await StartAsync(mode, [.. Host("localhost", Certificates.Ecdsa)]);
        foreach ((string version, string protocol) in new[] { ("1.1", ""), ("2.0", "h2") })
        {
            using HttpClient client = Server.CreateClient(version, handler => handler.ConnectCallback = ToLoopbackAsync);
            Uri https = new($"https://localhost:{server.Https.Port}");

            await Offloads.AssertInAsync(mode, client, https);

            string features = await client.GetStringAsync(new Uri(https, "/features")).InTime();
            Assert.StartsWith("https\nTls13\n", features, StringComparison.Ordinal);
            Assert.Contains($"\n{protocol}\n", features, StringComparison.Ordinal);
            Assert.Equal("localhost", await client.GetStringAsync(new Uri(https, "/host")).InTime());
        }
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task A_name_that_is_not_configured_is_refused_with_the_same_words(TlsMode mode)
    {
        string[] failures = await SideBySide.RunAsync(mode, async each =>
        {
            List<string> seen = [];
            await using Server server = await StartAsync(each, [.. Host("localhost", Certificates.Ecdsa)]);
            foreach (string name in s_unknown)
            {
                Exception? e = await Record.ExceptionAsync(() => server.ConnectAsync(configure: options => options.TargetHost = name));
                Assert.True(e is AuthenticationException or IOException, $"{e}");
                Server.Log.Entry entry = await server.Events.WaitForAsync(
                    x => x.Id.Name == "AuthenticationFailed" && !seen.Contains(x.Exception!.Message), "the refusal");
                Assert.IsType<AuthenticationException>(entry.Exception);
                seen.Add(entry.Exception!.Message);
            }

            Assert.DoesNotContain(server.Events.Entries, e => e.Level > LogLevel.Information);
            return seen.ToArray();
        });
        Assert.Contains("elsewhere.test", failures[0], StringComparison.Ordinal);
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task A_changed_configuration_is_served_without_a_restart(TlsMode mode)
    {
        int port = Server.FreePort();
        await using Server server = await StartAsync(mode, [
            .. Host("localhost", Certificates.Ecdsa), KeyValuePair.Create("Url", $"https://127.0.0.1:{port}")]);
        await using (SslStream before = await server.ConnectAsync(configure: options => options.ApplicationProtocols = s_both, port: port))
        {
            Assert.Equal(Certificates.Ecdsa.Thumbprint, ThumbprintOf(before));
            Assert.Equal(SslApplicationProtocol.Http2, before.NegotiatedApplicationProtocol);
        }

        IConfigurationRoot configuration = (IConfigurationRoot)server.Services.GetRequiredService<IConfiguration>();
        foreach ((string key, string value) in Host("localhost", Certificates.Rsa))
        {
            configuration[Endpoint + key] = value;
        }

        configuration[Endpoint + "Sni:localhost:Protocols"] = "Http1";
        configuration.Reload();
        await server.Events.WaitForAsync(
            e => e.Message.StartsWith("Config changed. Starting", StringComparison.Ordinal), "the server to take the configuration");

        await using SslStream after = await ConnectWhenThereAsync(server, port);
        Assert.Equal(Certificates.Rsa.Thumbprint, ThumbprintOf(after));
        Assert.Equal(SslApplicationProtocol.Http11, after.NegotiatedApplicationProtocol);
        await after.WriteAsync("GET /offload HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"u8.ToArray()).InTime();
        using StreamReader reader = new(after, Encoding.Latin1);
        Assert.Contains(Offloads.Expected(mode, SslProtocols.Tls13), await reader.ReadToEndAsync().InTime(), StringComparison.Ordinal);
    }

    /// <summary>
    /// Returns the properties of a connection of a client that offers everything and has a certificate.
    /// </summary>
    private static async Task<string> ConnectAsync(Server server, string name)
    {
        await using SslStream client = await server.ConnectAsync(SslProtocols.None, options =>
        {
            options.TargetHost = name;
            options.ApplicationProtocols = s_both;
            options.ClientCertificateContext = Certificates.ClientContext;
            options.RemoteCertificateValidationCallback = (_, _, _, _) => true;
        });
        return $"{ThumbprintOf(client)} {client.SslProtocol} {client.NegotiatedApplicationProtocol} {client.IsMutuallyAuthenticated}";
    }

    /// <summary>Connects, and retries in the time between the old listener and the new one.</summary>
    private static async Task<SslStream> ConnectWhenThereAsync(Server server, int port)
    {
        using PeriodicTimer timer = new(TimeSpan.FromMilliseconds(50));
        for (long deadline = Environment.TickCount64 + (long)Limits.Wait.TotalMilliseconds; ;)
        {
            try
            {
                return await server.ConnectAsync(configure: options => options.ApplicationProtocols = s_both, port: port);
            }
            catch (SocketException e) when (e.SocketErrorCode == SocketError.ConnectionRefused)
            {
                Assert.True(Environment.TickCount64 < deadline, $"Waited {Limits.Wait.TotalSeconds} s for the new listener.");
            }

            await timer.WaitForNextTickAsync();
        }
    }

    private static string ThumbprintOf(SslStream client) => ((X509Certificate2)client.RemoteCertificate!).Thumbprint;

    private static async ValueTask<Stream> ToLoopbackAsync(SocketsHttpConnectionContext context, CancellationToken cancellationToken)
    {
        Socket socket = new(SocketType.Stream, ProtocolType.Tcp);
        await socket.ConnectAsync(IPAddress.Loopback, context.DnsEndPoint.Port, cancellationToken);
        return new NetworkStream(socket, ownsSocket: true);
    }

    private static Task<Server> StartAsync(TlsMode mode, IEnumerable<KeyValuePair<string, string>> settings) => Server.StartAsync(
        mode,
        options => options.Configure(
            options.ApplicationServices.GetRequiredService<IConfiguration>().GetSection("Kestrel"), reloadOnChange: true),
        builder =>
        {
            builder.Configuration[Endpoint + "Url"] = "https://127.0.0.1:0";
            foreach ((string key, string value) in settings)
            {
                builder.Configuration[Endpoint + key] = value;
            }
        });

    private IEnumerable<KeyValuePair<string, string>> Host(string name, X509Certificate2 certificate)
    {
        (string path, string key) = Certificates.WritePem(
            certificate, Directory.CreateDirectory(_directory[certificate.Thumbprint]).FullName);
        yield return KeyValuePair.Create($"Sni:{name}:Certificate:Path", path);
        yield return KeyValuePair.Create($"Sni:{name}:Certificate:KeyPath", key);
    }
}

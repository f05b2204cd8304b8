using System.Net;
using System.Net.Security;
using System.Net.Sockets;
using System.Security.Authentication;
using KernelTls.Tests;

namespace KernelTls.ConformanceTests;

#pragma warning disable CA1416 // Linux

/// <summary>
/// Tests that options without explicit settings offer and accept the same as the stock stream on the same machine.
/// </summary>
/// <remarks>
/// Kernel TLS must not weaken the negotiation, and a fallback must not change it.
/// <see cref="SystemConfigurationTests"/> runs these tests with other openssl.cnf files.
/// </remarks>
[Trait("loop", "outer-kernel")]
public class DefaultNegotiationTests
{
    /// <summary>A host for which no handshake ever completes, so that there is no session to offer.</summary>
    private const string Host = "negotiation.test";

    private const SslProtocols Both = SslProtocols.Tls12 | SslProtocols.Tls13;

    public static TheoryData<TlsMode, SslProtocols> Versions =>
        Modes.With(SslProtocols.None, SslProtocols.Tls12, SslProtocols.Tls13, Both);

    public static TheoryData<TlsMode, string> Keys => Modes.With("ECDSA P-256", "RSA 2048");

    public static TheoryData<TlsMode, string> HttpVersions => Modes.With("1.1", "2.0");

    [Theory]
    [MemberData(nameof(Versions))]
    public async Task A_client_offers_what_SslStream_offers(TlsMode mode, SslProtocols version)
    {
        foreach (bool resumes in new[] { false, true })
        {
            string offered = await SideBySide.RunAsync(mode, async each =>
            {
                using SocketPair sockets = await SocketPair.ConnectAsync();
                await using SslStream client = Modes.Create(each, new NetworkStream(sockets.Client));
                SslClientAuthenticationOptions options = Handshakes.ClientOptions(version);
                options.TargetHost = Host;
                options.AllowTlsResume = resumes;
                options.ApplicationProtocols = [SslApplicationProtocol.Http2, SslApplicationProtocol.Http11];
                Task shaking = client.HandshakeAsClientAsync(options);
                string hello = HelloProbe.Describe(await HelloProbe.ReadRecordAsync(sockets.Server));
                sockets.Server.Dispose();
                await Assert.ThrowsAnyAsync<Exception>(() => shaking.InTime("the handshake to break off"));
                return hello;
            }, $"resumes: {resumes}");
            Assert.Contains("extension 13 ", offered, StringComparison.Ordinal);
        }
    }

    [Theory]
    [MemberData(nameof(HttpVersions))]
    public async Task HttpClient_offers_what_the_stock_one_offers(TlsMode mode, string version)
    {
        await SideBySide.RunAsync(mode, async each =>
        {
            using Socket listener = new(AddressFamily.InterNetwork, SocketType.Stream, ProtocolType.Tcp);
            listener.Bind(new IPEndPoint(IPAddress.Loopback, 0));
            listener.Listen();
            using SocketsHttpHandler handler = new() { UseProxy = false };
            if (each != TlsMode.Stock)
            {
                handler.UseKernelTls(Modes.OptionsOf(each));
            }

            using HttpClient client = new(handler)
            {
                DefaultRequestVersion = Version.Parse(version),
                DefaultVersionPolicy = HttpVersionPolicy.RequestVersionExact,
            };
            client.DefaultRequestHeaders.Host = Host;
            Task<string> asking = client.GetStringAsync(new Uri($"https://localhost:{((IPEndPoint)listener.LocalEndPoint!).Port}/"));
            using (Socket server = await listener.AcceptAsync().InTime("the connection of HttpClient"))
            {
                string hello = HelloProbe.Describe(await HelloProbe.ReadRecordAsync(server));
                server.Dispose();
                await Assert.ThrowsAsync<HttpRequestException>(() => asking.InTime("the request to fail"));
                return hello;
            }
        });
    }

    [Theory]
    [MemberData(nameof(Keys))]
    public async Task A_server_accepts_what_SslStream_accepts(TlsMode mode, string key)
    {
        string[] accepted = await SideBySide.RunAsync(mode, each => HelloProbe.AcceptedAsync(offered => OfferAsync(each, key, offered)));

        // A security level may forbid the RSA key.
        Assert.True(accepted.Length > 0 || key != "ECDSA P-256", "no suite is accepted at all");
    }

    private static async Task<TlsCipherSuite?> OfferAsync(TlsMode mode, string key, TlsCipherSuite[] suites)
    {
        using SocketPair sockets = await SocketPair.ConnectAsync();
        await using SslStream server = Modes.Create(mode, new NetworkStream(sockets.Server, ownsSocket: true));
        SslServerAuthenticationOptions options = Handshakes.ServerOptions(SslProtocols.None);
        options.ServerCertificateContext = Certificates.KindContext(key);
        Task shaking = server.HandshakeAsServerAsync(options);
        Task disposing = DisposeAfterAsync(shaking, server);
        TlsCipherSuite? chosen = await HelloProbe.OfferAsync(sockets.Client, suites);
        sockets.Client.Dispose();
        await disposing.InTime("the server's handshake to break off");
        return chosen;
    }

    /// <summary>Closes the connection after a refusal without an alert.</summary>
    private static async Task DisposeAfterAsync(Task shaking, SslStream server)
    {
        await Assert.ThrowsAnyAsync<Exception>(() => shaking);
        await server.DisposeAsync();
    }
}

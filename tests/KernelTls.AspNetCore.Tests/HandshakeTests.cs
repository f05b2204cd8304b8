using System.Diagnostics;
using System.Net;
using System.Net.Security;
using System.Net.Sockets;
using System.Security.Authentication;
using System.Security.Cryptography.X509Certificates;
using System.Text;
using KernelTls.AspNetCore.Internals;
using KernelTls.Tests;
using Microsoft.AspNetCore.Hosting;
using Microsoft.AspNetCore.Server.Kestrel.Core;
using Microsoft.AspNetCore.Server.Kestrel.Https;
using Microsoft.Extensions.Logging;

namespace KernelTls.AspNetCore.Tests;

/// <summary>Tests the options of HttpsConnectionAdapterOptions, and handshakes that fail.</summary>
public class HandshakeTests
{
    private static readonly bool[] s_both = [false, true];

    public static TheoryData<TlsMode> All => [.. Modes.Every];

    public static TheoryData<TlsMode, ClientCertificateMode, bool> CertificateModes =>
    [
        .. from mode in Modes.Every
           from asked in Enum.GetValues<ClientCertificateMode>().Where(m => m != ClientCertificateMode.DelayCertificate)
           from shown in s_both
           select new TheoryDataRow<TlsMode, ClientCertificateMode, bool>(mode, asked, shown),
    ];

    [Theory]
    [MemberData(nameof(CertificateModes))]
    public async Task Client_certificates_are_asked_for_as_the_endpoint_says(TlsMode mode, ClientCertificateMode asked, bool shown)
    {
        await using Server server = await Server.StartAsync(mode, https =>
        {
            https.ClientCertificateMode = asked;
            https.OnAuthenticate = (_, options) => options.CertificateChainPolicy = Certificates.Trust();
        });
        using HttpClient client = Server.CreateClient(configure: handler =>
            handler.SslOptions.ClientCertificateContext = shown ? Certificates.ClientContext : null);

        if (asked == ClientCertificateMode.RequireCertificate && !shown)
        {
            await Assert.ThrowsAsync<HttpRequestException>(() => client.GetStringAsync(new Uri(server.Https, "/certificate")).InTime());
            return;
        }

        string seen = await client.GetStringAsync(new Uri(server.Https, "/certificate")).InTime();

        Assert.Equal(shown && asked != ClientCertificateMode.NoCertificate ? Certificates.Client.Subject : "none", seen);
        await Offloads.AssertInAsync(mode, client, server.Https);
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task A_certificate_that_nobody_trusts_is_refused_unless_the_callback_takes_it(TlsMode mode)
    {
        SslPolicyErrors seen = SslPolicyErrors.None;
        bool takes = false;
        await using Server server = await Server.StartAsync(mode, https =>
        {
            https.ClientCertificateMode = ClientCertificateMode.RequireCertificate;
            https.ClientCertificateValidation = (_, _, errors) =>
            {
                seen = errors;
                return takes;
            };
        });
        using HttpClient client = Server.CreateClient(configure: handler => handler.SslOptions.ClientCertificateContext = Certificates.ClientContext);

        await Assert.ThrowsAsync<HttpRequestException>(() => client.GetStringAsync(new Uri(server.Https, "/certificate")).InTime());
        Assert.NotEqual(SslPolicyErrors.None, seen);

        takes = true;
        Assert.Equal(Certificates.Client.Subject, await client.GetStringAsync(new Uri(server.Https, "/certificate")).InTime());
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task A_request_can_ask_for_the_certificate_under_TLS_1_3(TlsMode mode)
    {
        await using Server server = await Server.StartAsync(mode, https =>
        {
            https.SslProtocols = SslProtocols.Tls13;
            https.ClientCertificateMode = ClientCertificateMode.DelayCertificate;
            https.OnAuthenticate = (_, options) => options.CertificateChainPolicy = Certificates.Trust();
        });
        using HttpClient client = Server.CreateClient(configure: handler =>
            handler.SslOptions.ClientCertificateContext = Certificates.ClientContext);

        Assert.Contains("\nnone\n", await client.GetStringAsync(new Uri(server.Https, "/features")).InTime(), StringComparison.Ordinal);
        Assert.Equal(Certificates.Client.Subject, await client.GetStringAsync(new Uri(server.Https, "/certificate")).InTime());
        Assert.Contains($"\n{Certificates.Client.Subject}\n", await client.GetStringAsync(new Uri(server.Https, "/features")).InTime(), StringComparison.Ordinal);
        await Offloads.AssertInAsync(mode, client, server.Https);
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task A_selector_is_asked_with_the_name(TlsMode mode)
    {
        Calls names = new();
        await using Server server = await Server.StartAsync(mode, https =>
        {
            https.ServerCertificateSelector = (connection, name) =>
            {
                names.Add(name, connection?.ConnectionId.Length);
                return name == "elsewhere.test" ? Certificates.WrongName : Certificates.Ecdsa;
            };
        });

        foreach ((string name, X509Certificate2 certificate) in new[] { ("localhost", Certificates.Ecdsa), ("elsewhere.test", Certificates.WrongName) })
        {
            await using SslStream client = await server.ConnectAsync(configure: options => options.TargetHost = name);
            Assert.Equal(certificate.Thumbprint, ((X509Certificate2)client.RemoteCertificate!).Thumbprint);
        }

        Assert.Equal(["localhost | 13", "elsewhere.test | 13"], names.List);
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task OnAuthenticate_has_the_last_word(TlsMode mode)
    {
        SslServerAuthenticationOptions? given = null;
        await using Server server = await Server.StartAsync(mode, https =>
        {
            https.SslProtocols = SslProtocols.Tls12 | SslProtocols.Tls13;
            https.OnAuthenticate = (_, options) =>
            {
                given = options;
                options.EnabledSslProtocols = SslProtocols.Tls12;
            };
        });

        await using SslStream client = await server.ConnectAsync(SslProtocols.None);

        Assert.Equal(SslProtocols.Tls12, client.SslProtocol);
        Assert.NotNull(given!.ServerCertificateContext);
        Assert.Equal([SslApplicationProtocol.Http2, SslApplicationProtocol.Http11], given.ApplicationProtocols);
        Assert.False(given.AllowRenegotiation);
        Assert.False(given.ClientCertificateRequired);
        Assert.Equal(X509RevocationMode.NoCheck, given.CertificateRevocationCheckMode);
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task ALPN_offers_what_the_endpoint_speaks(TlsMode mode)
    {
        List<SslApplicationProtocol> both = [SslApplicationProtocol.Http2, SslApplicationProtocol.Http11];
        foreach ((HttpProtocols spoken, SslApplicationProtocol expected) in new[]
        {
            (HttpProtocols.Http1, SslApplicationProtocol.Http11),
            (HttpProtocols.Http2, SslApplicationProtocol.Http2),
            (HttpProtocols.Http1AndHttp2, SslApplicationProtocol.Http2),
        })
        {
            await using Server server = await Server.StartAsync(mode, listen: endpoint => endpoint.Protocols = spoken);
            await using SslStream client = await server.ConnectAsync(configure: options => options.ApplicationProtocols = both);
            Assert.Equal(expected, client.NegotiatedApplicationProtocol);
        }
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task A_client_that_says_nothing_is_cut_off_in_time(TlsMode mode)
    {
        await using Server server = await Server.StartAsync(mode, https => https.HandshakeTimeout = TimeSpan.FromMilliseconds(500));
        Stopwatch time = Stopwatch.StartNew();
        using Socket client = await server.ConnectSocketAsync();

        Assert.Equal(0, await client.ReceiveAsync(new byte[1]).InTime("the server to close"));

        Assert.True(time.Elapsed > TimeSpan.FromMilliseconds(400), $"{time.Elapsed}");
        await AssertOnlyDebugAsync(server);
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task Garbage_instead_of_a_hello_ends_the_connection(TlsMode mode)
    {
        await using Server server = await Server.StartAsync(mode);
        List<byte[]> kinds = ["GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"u8.ToArray(), new byte[100]];
        if (Modes.OnOpenSsl.Contains(mode))
        {
            // The stock stream throws an IndexOutOfRangeException on an empty ClientHello.
            kinds.Add([22, 3, 1, 0, 4, 1, 0, 0, 0]);
        }

        foreach (byte[] garbage in kinds)
        {
            using Socket client = await server.ConnectSocketAsync();
            await client.SendAsync(garbage).InTime();
            client.Shutdown(SocketShutdown.Send);
            await DrainAsync(client);
        }

        await AssertOnlyDebugAsync(server);
        using HttpClient good = Server.CreateClient();
        await Offloads.AssertInAsync(mode, good, server.Https);
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task A_client_that_leaves_in_the_handshake_is_forgotten(TlsMode mode)
    {
        await using Server server = await Server.StartAsync(mode);
        using (Socket client = await server.ConnectSocketAsync())
        {
            await client.SendAsync(new byte[] { 22, 3, 1 }).InTime();
        }

        await AssertOnlyDebugAsync(server);
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task A_client_that_refuses_the_certificate_is_forgotten(TlsMode mode)
    {
        await using Server server = await Server.StartAsync(mode);
        await Assert.ThrowsAsync<AuthenticationException>(async () =>
            await server.ConnectAsync(configure: options => options.TargetHost = "elsewhere.test"));

        using HttpClient good = Server.CreateClient();
        await Offloads.AssertInAsync(mode, good, server.Https);
        Assert.DoesNotContain(server.Events.Entries, e => e.Level > LogLevel.Information);
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task Shutting_down_in_a_handshake_does_not_wait_for_it(TlsMode mode)
    {
        await using Server server = await Server.StartAsync(mode);
        using Socket client = await server.ConnectSocketAsync();
        await server.Events.WaitForAsync(e => e.Id.Name == "ConnectionStart", "the connection to start");

        await server.DisposeAsync().InTime();

        await DrainAsync(client);
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task What_a_callback_throws_reaches_Kestrel_as_ever(TlsMode mode)
    {
        Server server = await Server.StartAsync(mode, https => https.OnAuthenticate = (_, _) => throw new InvalidOperationException("on purpose"));
        using Socket client = await server.ConnectSocketAsync();

        await DrainAsync(client);

        Server.Log.Entry entry = await server.Events.WaitForAsync(e => e.Level == LogLevel.Error, "Kestrel's word");
        Assert.Equal("on purpose", entry.Exception?.Message);
        await server.StopAsync().InTime();
    }

    /// <summary>Reads until the server closes or resets the connection.</summary>
    private static async Task DrainAsync(Socket client)
    {
        try
        {
            while (await client.ReceiveAsync(new byte[1024]).InTime("the server to close") > 0)
            {
            }
        }
        catch (SocketException e) when (e.SocketErrorCode == SocketError.ConnectionReset)
        {
        }
    }

    /// <summary>
    /// Asserts that a failed handshake is logged at Debug only, under the category of Kestrel's HTTPS middleware,
    /// whichever engine failed it.
    /// </summary>
    private static async Task AssertOnlyDebugAsync(Server server)
    {
        await server.Events.WaitForAsync(
            e => e.Level == LogLevel.Debug && e.Category == KestrelInternals.HttpsCategory
                && e.Id.Name is "AuthenticationFailed" or "AuthenticationTimedOut",
            "a word on the handshake");
        await server.Events.WaitForAsync(e => e.Id.Name == "ConnectionStop", "the connection to stop");
        Assert.DoesNotContain(server.Events.Entries, e => e.Level > LogLevel.Information);
    }
}

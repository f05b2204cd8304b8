using System.Globalization;
using System.Net;
using System.Net.Security;
using System.Net.Sockets;
using System.Security.Authentication;
using System.Text;
using KernelTls.Tests;
using Microsoft.AspNetCore.Hosting;
using Microsoft.AspNetCore.Server.Kestrel.Core;
using Microsoft.AspNetCore.Server.Kestrel.Https;
using Microsoft.Extensions.Logging;

namespace KernelTls.AspNetCore.Tests;

/// <summary>Tests requests that ask for the client's certificate, compared with the stock server.</summary>
[Trait("loop", "outer-kernel")]
public class DelayedCertificateTests
{
    public static TheoryData<TlsMode, SslProtocols, bool> AllChosenOrNot => Modes.AllWith(false, true);

    public static TheoryData<TlsMode, SslProtocols> All => Modes.All;

    public static TheoryData<TlsMode> EveryMode => [.. Modes.Every];

    public static TheoryData<TlsMode> OnOpenSsl => [.. Modes.OnOpenSsl];

    [Theory]
    [MemberData(nameof(AllChosenOrNot))]
    public async Task A_request_can_ask_whatever_the_version(TlsMode mode, SslProtocols version, bool isChosen)
    {
        foreach (bool shown in new[] { true, false })
        {
            if (!shown && version == SslProtocols.Tls13)
            {
                // The client does not offer post-handshake authentication. The next test covers that.
                continue;
            }

            await using Server server = await StartAsync(mode, isChosen);
            using HttpClient client = CreateClient(version, shown);

            Assert.Contains("\nnone\n", await client.GetStringAsync(new Uri(server.Https, "/features")).InTime(), StringComparison.Ordinal);
            string expected = shown ? Certificates.Client.Subject : "none";
            Assert.Equal(expected, await client.GetStringAsync(new Uri(server.Https, "/certificate")).InTime());
            Assert.Contains($"\n{expected}\n", await client.GetStringAsync(new Uri(server.Https, "/features")).InTime(), StringComparison.Ordinal);
            Pattern.AssertAt(0, await client.GetByteArrayAsync(new Uri(server.Https, "/bytes/1000000")).InTime());
            Assert.Equal(Expected(mode, version), await client.GetStringAsync(new Uri(server.Https, "/offload")).InTime());
        }
    }

    /// <summary>
    /// A client without a certificate does not offer post-handshake authentication in its ClientHello (RFC 8446,
    /// section 4.2.6). Since .NET 11 such a request continues without a certificate.
    /// </summary>
    [Theory]
    [MemberData(nameof(EveryMode))]
    public async Task A_TLS_1_3_client_that_did_not_offer_to_be_asked_gets_its_answer_and_no_other(TlsMode mode)
    {
        await using Server server = await StartAsync(mode, isChosen: false);
        using HttpClient client = CreateClient(SslProtocols.Tls13, shown: false);
        using ByteArrayContent nothing = new([]);

        using HttpResponseMessage response = await client.PostAsync(new Uri(server.Https, "/ask/after"), nothing).InTime();

        bool completes = Environment.Version.Major >= 11;
        Assert.Equal(completes ? null : true, response.Headers.ConnectionClose);
        string outcome = await response.Content.ReadAsStringAsync().InTime();
        Assert.Equal(completes ? "none" : Modes.OnOpenSsl.Contains(mode) ? nameof(InvalidOperationException) : "SslException", outcome);
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task HTTP_2_does_not_ask(TlsMode mode, SslProtocols version)
    {
        await using Server server = await StartAsync(mode, isChosen: false, HttpProtocols.Http2);
        using HttpClient client = CreateClient(version, shown: true, "2.0");

        Assert.Equal("none", await client.GetStringAsync(new Uri(server.Https, "/certificate")).InTime());

        // TLS 1.2 is therefore no obstacle.
        Assert.Equal(Offloads.Expected(mode, version), await client.GetStringAsync(new Uri(server.Https, "/offload")).InTime());
    }

    /// <summary>The body precedes the answer: the application has to read it first.</summary>
    [Theory]
    [MemberData(nameof(All))]
    public async Task Behind_the_body_a_request_can_ask(TlsMode mode, SslProtocols version)
    {
        await using Server server = await StartAsync(mode, isChosen: false);
        using HttpClient client = CreateClient(version, shown: true);
        using ByteArrayContent content = new(Pattern.Take(500_000));

        using HttpResponseMessage response = await client.PostAsync(new Uri(server.Https, "/ask/after"), content).InTime();

        Assert.Equal(Certificates.Client.Subject, await response.Content.ReadAsStringAsync().InTime());
        Assert.Equal(Expected(mode, version), await client.GetStringAsync(new Uri(server.Https, "/offload")).InTime());
    }

    /// <summary>
    /// A client may send its next request before it answers the server's (RFC 8446, section 4.6.2). The stock server answers both
    /// without the certificate on .NET 10, and the first one on .NET 11.
    /// </summary>
    [Theory]
    [MemberData(nameof(OnOpenSsl))]
    public async Task A_client_that_sends_its_next_request_first_gets_both_answers(TlsMode mode)
    {
        await using Server server = await StartAsync(mode, isChosen: false);
        using Socket socket = new(SocketType.Stream, ProtocolType.Tcp);
        await socket.ConnectAsync(IPAddress.Loopback, server.Https.Port);
        await using SslStream client = new(new NetworkStream(socket));
        SslClientAuthenticationOptions options = Handshakes.ClientOptions(SslProtocols.Tls13);
        options.ClientCertificateContext = Certificates.ClientContext;
        await client.AuthenticateAsClientAsync(options).InTime("the handshake");
        using StreamReader reader = new(client, leaveOpen: true);
        await client.WriteAsync(Request("/offload")).InTime("a request that needs no certificate");
        // The session tickets precede this answer, so that the next bytes are those of the request for the certificate.
        _ = await ReadAnswerAsync(reader);

        await client.WriteAsync(Request("/certificate")).InTime("the first request");
        Assert.True(await Limits.Blocking(() => socket.Poll(Limits.Wait, SelectMode.SelectRead)), "the server did not ask");
        await client.WriteAsync(Request("/certificate")).InTime("the second request");

        Assert.Equal(Certificates.Client.Subject, await ReadAnswerAsync(reader));
        Assert.Equal(Certificates.Client.Subject, await ReadAnswerAsync(reader));
    }

    /// <summary>The stock stream may wait forever in this case.</summary>
    [Theory]
    [MemberData(nameof(OnOpenSsl))]
    public async Task In_front_of_the_body_it_cannot_and_the_connection_ends(TlsMode mode)
    {
        await using Server server = await StartAsync(mode, isChosen: false);
        using HttpClient client = CreateClient(SslProtocols.Tls13, shown: true);
        using ByteArrayContent content = new(Pattern.Take(500_000));
        try
        {
            using HttpResponseMessage response = await client.PostAsync(new Uri(server.Https, "/ask/before"), content).InTime();
            Assert.Equal(nameof(InvalidOperationException), await response.Content.ReadAsStringAsync().InTime());
        }
        catch (HttpRequestException)
        {
            // Whether the response still arrives depends on timing: the client is sending its body.
        }

        Server.Log.Entry asked = await server.Events.WaitForAsync(e => e.Category == "ask", "the outcome of asking too early");
        Assert.IsType<InvalidOperationException>(asked.Exception);
        await server.Events.WaitForAsync(e => e.Id.Name == "ConnectionStop", "the connection to stop");
        Assert.DoesNotContain(server.Events.Entries, e => e.Level > LogLevel.Information);
    }

    [Theory]
    [MemberData(nameof(EveryMode))]
    public async Task TLS_1_2_in_front_of_a_server_that_requires_kernel_TLS_is_refused(TlsMode mode)
    {
        Task<Server> starting = StartAsync(TlsMode.Stock, isChosen: false, builder: b => b.WebHost.UseKernelTls(Offloads.Require));
        if (!KtlsPlatform.Probe().IsSupported)
        {
            KtlsNotAvailableException e = await Assert.ThrowsAsync<KtlsNotAvailableException>(() => starting.InTime());
            Assert.Equal(KtlsPlatform.Probe().NotSupportedReason, e.Reason);
            return;
        }

        await using Server server = await starting.InTime();
        using HttpClient good = CreateClient(SslProtocols.Tls13, shown: true);
        using HttpClient old = CreateClient(SslProtocols.Tls12, shown: true);
        Assert.Equal(Certificates.Client.Subject, await good.GetStringAsync(new Uri(server.Https, "/certificate")).InTime());
        await Assert.ThrowsAsync<HttpRequestException>(() => old.GetStringAsync(new Uri(server.Https, "/certificate")).InTime());
        Server.Log.Entry entry = await server.Events.WaitForAsync(
            e => e.Exception is KtlsNotAvailableException, $"the refusal, {mode}");
        Assert.Equal(KtlsFallbackReason.DelayedCertificate, ((KtlsNotAvailableException)entry.Exception!).Reason);
    }

    private static byte[] Request(string path) => Encoding.ASCII.GetBytes($"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n");

    /// <summary>Reads an answer in chunks, which are lines of hexadecimal lengths and of text, and returns its body.</summary>
    private static async Task<string> ReadAnswerAsync(StreamReader reader)
    {
        Assert.Equal("HTTP/1.1 200 OK", await reader.ReadLineAsync().InTime("an answer"));
        while (await reader.ReadLineAsync().InTime("a header") is { Length: > 0 })
        {
        }

        StringBuilder body = new();
        while (int.Parse((await reader.ReadLineAsync().InTime("the length of a chunk"))!, NumberStyles.HexNumber, CultureInfo.InvariantCulture) is > 0 and int length)
        {
            char[] chunk = new char[length + 2];
            Assert.Equal(chunk.Length, await reader.ReadBlockAsync(chunk).AsTask().InTime("a chunk"));
            body.Append(chunk, 0, length);
        }

        Assert.Equal("", await reader.ReadLineAsync().InTime("the end of the answer"));
        return body.ToString();
    }

    private static string Expected(TlsMode mode, SslProtocols version) =>
        version == SslProtocols.Tls12 && Modes.OnOpenSsl.Contains(mode)
            ? "send=managed (DelayedCertificate) receive=managed (DelayedCertificate)"
            : Offloads.Expected(mode, version);

    private static HttpClient CreateClient(SslProtocols version, bool shown, string http = "1.1") => Server.CreateClient(http, handler =>
    {
        handler.SslOptions.EnabledSslProtocols = version;
        handler.SslOptions.AllowTlsResume = false;
        handler.SslOptions.ClientCertificateContext = shown ? Certificates.ClientContext : null;
    });

    private static Task<Server> StartAsync(
        TlsMode mode,
        bool isChosen,
        HttpProtocols protocols = HttpProtocols.Http1AndHttp2,
        Action<Microsoft.AspNetCore.Builder.WebApplicationBuilder>? builder = null) => Server.StartAsync(
        mode,
        options => options.Listen(IPAddress.Loopback, 0, endpoint =>
        {
            endpoint.Protocols = protocols;
            if (isChosen)
            {
                endpoint.UseHttps(new TlsHandshakeCallbackOptions { HandshakeTimeout = Limits.Wait, OnConnection = Choose });
            }
            else
            {
                endpoint.UseHttps(Certificates.Ecdsa, https =>
                {
                    https.HandshakeTimeout = Limits.Wait;
                    https.ClientCertificateMode = ClientCertificateMode.DelayCertificate;
                    https.OnAuthenticate = (_, given) => given.CertificateChainPolicy = Certificates.Trust();
                });
            }
        }),
        builder);

    private static ValueTask<SslServerAuthenticationOptions> Choose(TlsHandshakeCallbackContext context)
    {
        context.AllowDelayedClientCertificateNegotation = true;
        SslServerAuthenticationOptions options = Handshakes.ServerOptions(SslProtocols.None);
        options.RemoteCertificateValidationCallback = (_, certificate, _, errors) => certificate is null || errors == SslPolicyErrors.None;
        return ValueTask.FromResult(options);
    }
}

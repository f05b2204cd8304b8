using System.Net;
using System.Net.Security;
using System.Net.Sockets;
using System.Security.Authentication;
using System.Security.Cryptography.X509Certificates;
using KernelTls.AspNetCore.Internals;
using KernelTls.Tests;
using Microsoft.AspNetCore.Hosting;
using Microsoft.AspNetCore.Server.Kestrel.Core;
using Microsoft.AspNetCore.Server.Kestrel.Https;
using Microsoft.Extensions.Logging;

namespace KernelTls.AspNetCore.Tests;

/// <summary>
/// Tests UseHttps with a callback that chooses each connection's options, compared with the stock server.
/// </summary>
[Trait("loop", "outer-kernel")]
public class HandshakeCallbackTests
{
#pragma warning disable SYSLIB0039 // Obsolete, but enabled for old clients.
    private const SslProtocols Old = SslProtocols.Tls11 | SslProtocols.Tls12;
#pragma warning restore SYSLIB0039

    private static readonly List<SslApplicationProtocol> s_both = [SslApplicationProtocol.Http2, SslApplicationProtocol.Http11];

    public static TheoryData<TlsMode> All => [.. Modes.Every];

    public static TheoryData<TlsMode> OnOpenSsl => [.. Modes.OnOpenSsl];

    [Theory]
    [MemberData(nameof(All))]
    public async Task The_callback_is_told_who_connects_and_may_take_its_time(TlsMode mode)
    {
        object state = new();
        string[] told = await SideBySide.RunAsync(mode, async each =>
        {
            List<string> seen = [];
            await using Server server = await StartAsync(each, new TlsHandshakeCallbackOptions
            {
                OnConnectionState = state,
                OnConnection = async context =>
                {
                    await Task.Yield();
                    seen.Add($"{context.ClientHelloInfo.ServerName} {context.SslStream.TargetHostName} {context.State == state}");
                    seen.Add($"{context.Connection.ConnectionId.Length} {context.Connection.Features.Get<SslStream>() == context.SslStream}");
                    seen.Add($"{context.CancellationToken.CanBeCanceled} {context.AllowDelayedClientCertificateNegotation}");
                    return Options();
                },
            });
            using HttpClient client = Server.CreateClient("2.0");
            await Offloads.AssertInAsync(each, client, server.Https);
            await using SslStream named = await server.ConnectAsync();
            return seen.ToArray();
        });
        Assert.Equal(6, told.Length);
        Assert.Equal("localhost localhost True", told[3]);
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task The_other_overload_passes_the_state_and_the_stream(TlsMode mode)
    {
        Calls calls = new();
        await using Server server = await Server.StartAsync(
            mode,
            options => options.Listen(IPAddress.Loopback, 0, endpoint => endpoint.UseHttps(
                (stream, hello, state, token) =>
                {
                    calls.Add(hello.ServerName, $"{state} {stream.TargetHostName} {token.CanBeCanceled}");
                    return ValueTask.FromResult(Options());
                },
                "state",
                Limits.Wait)),
            configure: null);
        await using SslStream client = await server.ConnectAsync();

        Assert.Equal(["localhost | state localhost True"], calls.List);
        Assert.Equal(Certificates.Ecdsa.Thumbprint, ((X509Certificate2)client.RemoteCertificate!).Thumbprint);
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task ALPN_is_the_endpoint_s_unless_the_callback_says_otherwise(TlsMode mode)
    {
        foreach ((List<SslApplicationProtocol>? given, HttpProtocols spoken, SslApplicationProtocol expected) in new[]
        {
            (null, HttpProtocols.Http1AndHttp2, SslApplicationProtocol.Http2),
            (null, HttpProtocols.Http1, SslApplicationProtocol.Http11),
            (new List<SslApplicationProtocol> { SslApplicationProtocol.Http11 }, HttpProtocols.Http1AndHttp2, SslApplicationProtocol.Http11),
        })
        {
            await using Server server = await StartAsync(
                mode,
                new TlsHandshakeCallbackOptions
                {
                    OnConnection = _ =>
                    {
                        SslServerAuthenticationOptions options = Options();
                        options.ApplicationProtocols = given;
                        return ValueTask.FromResult(options);
                    },
                },
                spoken);
            await using SslStream client = await server.ConnectAsync(configure: options => options.ApplicationProtocols = s_both);
            Assert.Equal(expected, client.NegotiatedApplicationProtocol);
        }
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task The_chosen_options_judge_the_client_s_certificate(TlsMode mode)
    {
        bool takes = true;
        await using Server server = await StartAsync(mode, new TlsHandshakeCallbackOptions
        {
            OnConnection = _ =>
            {
                SslServerAuthenticationOptions options = Options();
                options.ClientCertificateRequired = true;
                options.RemoteCertificateValidationCallback = (_, certificate, _, _) => takes && certificate is not null;
                return ValueTask.FromResult(options);
            },
        });
        using HttpClient client = Server.CreateClient(configure: handler =>
            handler.SslOptions.ClientCertificateContext = Certificates.ClientContext);
        client.DefaultRequestHeaders.ConnectionClose = true;
        Uri uri = new(server.Https, "/certificate");

        Assert.Equal(Certificates.Client.Subject, await client.GetStringAsync(uri).InTime());

        takes = false;
        await Assert.ThrowsAsync<HttpRequestException>(() => client.GetStringAsync(uri).InTime());
    }

    /// <summary>
    /// The ClientHello was peeked at and not consumed: the stock stream can still take the connection.
    /// </summary>
    [Theory]
    [MemberData(nameof(OnOpenSsl))]
    public async Task Options_that_only_SslStream_honours_are_honoured_by_it(TlsMode mode)
    {
        await using Server server = await StartAsync(mode, new TlsHandshakeCallbackOptions
        {
            OnConnection = context =>
            {
                SslServerAuthenticationOptions options = Options();
                options.EnabledSslProtocols = context.ClientHelloInfo.ServerName == "localhost" ? Old : SslProtocols.None;
                return ValueTask.FromResult(options);
            },
        });
        foreach ((string name, string expected) in new[]
        {
            ("localhost", "send=managed (ProtocolNotOffloadable) receive=managed (ProtocolNotOffloadable)"),
            ("elsewhere.test", Offloads.Expected(mode, SslProtocols.Tls13)),
        })
        {
            using HttpClient client = Server.CreateClient("2.0", handler =>
                handler.SslOptions.RemoteCertificateValidationCallback = (_, _, _, _) => true);
            client.DefaultRequestHeaders.Host = name;
            Assert.Equal(expected, await client.GetStringAsync(new Uri(server.Https, "/offload")).InTime());
            Pattern.AssertAt(0, await client.GetByteArrayAsync(new Uri(server.Https, "/bytes/1000000")).InTime());
        }
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task What_the_callback_throws_is_told_as_ever(TlsMode mode)
    {
        Exception[] failures = [new AuthenticationException("not you"), new IOException("no file"), new OperationCanceledException("no time")];
        string[] words = await SideBySide.RunAsync(mode, async each =>
        {
            List<string> seen = [];
            foreach (Exception failure in failures)
            {
                await using Server server = await StartAsync(
                    each, new TlsHandshakeCallbackOptions
                    {
                        OnConnection = async _ =>
                    {
                        await Task.Yield();
                        throw failure;
                    }
                    });
                Exception? e = await Record.ExceptionAsync(() => server.ConnectAsync());
                Assert.True(e is AuthenticationException or IOException, $"{e}");
                if (Modes.OnOpenSsl.Contains(each))
                {
                    // RFC 8446, section 6: the alert blames the server.
                    Assert.Contains("alert internal error", $"{e}", StringComparison.Ordinal);
                }

                Server.Log.Entry entry = await server.Events.WaitForAsync(
                    x => x.Category == KestrelInternals.HttpsCategory, "a word on the handshake");
                await server.Events.WaitForAsync(x => x.Id.Name == "ConnectionStop", "the connection to stop");
                Assert.DoesNotContain(server.Events.Entries, x => x.Level > LogLevel.Information);
                seen.Add($"{entry.Id} {entry.Id.Name} {entry.Level} {entry.Message} {entry.Exception?.Message}");
            }

            return seen.ToArray();
        });
        Assert.Contains("not you", words[0], StringComparison.Ordinal);
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task Other_failures_reach_Kestrel(TlsMode mode)
    {
        Server server = await StartAsync(
            mode, new TlsHandshakeCallbackOptions { OnConnection = _ => throw new InvalidOperationException("on purpose") });
        Exception? e = await Record.ExceptionAsync(() => server.ConnectAsync());
        Assert.True(e is AuthenticationException or IOException, $"{e}");

        Server.Log.Entry entry = await server.Events.WaitForAsync(x => x.Level == LogLevel.Error, "Kestrel's word");
        Assert.Equal("on purpose", entry.Exception?.Message);
        await server.StopAsync().InTime();
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task A_callback_that_takes_too_long_is_cut_off(TlsMode mode)
    {
        await using Server server = await StartAsync(mode, new TlsHandshakeCallbackOptions
        {
            HandshakeTimeout = TimeSpan.FromMilliseconds(500),
            OnConnection = async context =>
            {
                await Task.Delay(Timeout.Infinite, context.CancellationToken);
                return Options();
            },
        });

        Exception? e = await Record.ExceptionAsync(() => server.ConnectAsync());

        Assert.True(e is AuthenticationException or IOException, $"{e}");
        await server.Events.WaitForAsync(
            x => x.Category == KestrelInternals.HttpsCategory && x.Id.Name == "AuthenticationTimedOut", "a word on the timeout");
        Assert.DoesNotContain(server.Events.Entries, x => x.Level > LogLevel.Information);
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task Garbage_and_silence_never_reach_the_callback(TlsMode mode)
    {
        int calls = 0;
        await using Server server = await StartAsync(mode, new TlsHandshakeCallbackOptions
        {
            HandshakeTimeout = TimeSpan.FromSeconds(1),
            OnConnection = _ =>
            {
                calls++;
                return ValueTask.FromResult(Options());
            },
        });
        List<byte[]> kinds = [[], [22], [22, 3, 1, 0, 200, 1, 0, 0, 196, 3, 3], "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"u8.ToArray()];
        if (Modes.OnOpenSsl.Contains(mode))
        {
            // The stock stream accepts the first as a handshake without a certificate.
            kinds.AddRange([[22, 3, 1, 0, 5, 2, 0, 0, 1, 0], [22, 3, 1, 0, 4, 1, 0, 0, 0], [22, 3, 1, 0, 0, 1], [22, 3, 1, 255, 255, 1]]);
        }

        foreach (byte[] garbage in kinds)
        {
            using Socket client = await server.ConnectSocketAsync();
            await client.SendAsync(garbage).InTime();
            try
            {
                while (await client.ReceiveAsync(new byte[100]).InTime("the server to close") > 0)
                {
                }
            }
            catch (SocketException e) when (e.SocketErrorCode == SocketError.ConnectionReset)
            {
            }
        }

        Assert.Equal(0, calls);
        Assert.DoesNotContain(server.Events.Entries, x => x.Level > LogLevel.Information);
    }

    private static SslServerAuthenticationOptions Options() => Handshakes.ServerOptions(SslProtocols.None);

    private static Task<Server> StartAsync(
        TlsMode mode, TlsHandshakeCallbackOptions callback, HttpProtocols protocols = HttpProtocols.Http1AndHttp2)
    {
        if (callback.HandshakeTimeout == new TlsHandshakeCallbackOptions().HandshakeTimeout)
        {
            callback.HandshakeTimeout = Limits.Wait;
        }

        return Server.StartAsync(
            mode,
            options => options.Listen(IPAddress.Loopback, 0, endpoint =>
            {
                endpoint.UseHttps(callback);
                endpoint.Protocols = protocols;
            }),
            configure: null);
    }
}

using System.Net.Security;
using System.Net.Sockets;
using System.Security.Authentication;
using KernelTls.Tests;

namespace KernelTls.ConformanceTests;

/// <summary>The alerts that end handshakes (RFC 8446, section 6.2): which one the peer is sent, and what one that comes is made of.</summary>
public class AlertTests
{
    private const SslProtocols Both = SslProtocols.Tls12 | SslProtocols.Tls13;

    /// <summary>What OpenSSL calls the alert that it was sent.</summary>
    private static readonly Dictionary<string, byte> s_descriptions = new()
    {
        ["alert unexpected message"] = 10,
        ["alert bad record mac"] = 20,
        ["alert record overflow"] = 22,
        ["alert handshake failure"] = 40,
        ["alert bad certificate"] = 42,
        ["alert unsupported certificate"] = 43,
        ["alert certificate revoked"] = 44,
        ["alert certificate expired"] = 45,
        ["alert certificate unknown"] = 46,
        ["alert illegal parameter"] = 47,
        ["alert unknown ca"] = 48,
        ["alert access denied"] = 49,
        ["alert decode error"] = 50,
        ["alert decrypt error"] = 51,
        ["alert protocol version"] = 70,
        ["alert insufficient security"] = 71,
        ["alert internal error"] = 80,
        ["alert inappropriate fallback"] = 86,
        ["alert no application protocol"] = 120,
    };

    /// <summary>A certificate that is refused, and the alert that says why.</summary>
    private static readonly Dictionary<string, (string Server, string Client, string Alert)> s_verdicts = new()
    {
        ["expired"] = ("expired", "expired client", "alert certificate expired"),
        ["not yet valid"] = ("not yet valid", "not yet valid", "alert certificate expired"),
        ["untrusted"] = ("untrusted", "other client", "alert unknown ca"),
        ["self-signed"] = ("self-signed", "self-signed", "alert unknown ca"),
        ["wrong usage"] = ("for clients only", "for servers only", "alert bad certificate"),
        ["rejected by the callback"] = ("good", "second client", "alert certificate unknown"),
    };

    public static TheoryData<TlsMode> EveryMode => [.. Modes.Every];

    public static TheoryData<TlsMode, SslProtocols> All => Modes.All;

    public static TheoryData<TlsMode, SslProtocols, string> Disagreements => Modes.AllWith("version", "cipher suite", "application protocol");

    public static TheoryData<TlsMode, SslProtocols, string> Verdicts => Modes.AllWith<string>(s_verdicts.Keys);

    public static TheoryData<TlsMode, string> Descriptions => Modes.With<string>(s_descriptions.Keys);

    [Theory]
    [MemberData(nameof(Disagreements))]
    public async Task A_server_that_cannot_agree_says_about_what(TlsMode mode, SslProtocols version, string what)
    {
        async Task<string> AlertAsync(TlsMode each)
        {
            await using Meeting meeting = await Disagree(TlsMode.Stock, each, version, what).RunAsync();
            Assert.IsType<AuthenticationException>(meeting.ServerEnding.Handshake);
            Assert.IsType<AuthenticationException>(meeting.ClientEnding.Handshake);
            return Told(meeting.ClientEnding.Handshake);
        }

        string actual = await SideBySide.RunAsync(mode, AlertAsync);
        string expected = what switch
        {
            "version" => "alert protocol version",
            "cipher suite" => "alert handshake failure",
            _ => "alert no application protocol",
        };
        Assert.EndsWith(expected, actual, StringComparison.Ordinal);
    }

    /// <summary>The same alerts, as a KtlsStream client tells them.</summary>
    [Theory]
    [MemberData(nameof(Disagreements))]
    public async Task A_client_tells_what_the_server_could_not_agree_to(TlsMode mode, SslProtocols version, string what)
    {
        async Task<string> AlertAsync(TlsMode each)
        {
            await using Meeting meeting = await Disagree(each, TlsMode.Stock, version, what).RunAsync();
            Assert.NotNull(meeting.ServerEnding.Handshake);
            return Told(Assert.IsType<AuthenticationException>(meeting.ClientEnding.Handshake));
        }

        string actual = await SideBySide.RunAsync(mode, AlertAsync);
        Assert.Contains(" alert ", actual, StringComparison.Ordinal);
    }

    [Theory]
    [MemberData(nameof(Descriptions))]
    public async Task An_alert_as_the_first_record_is_named_to_a_client_and_unexpected_by_a_server(TlsMode mode, string name)
    {
        foreach (bool isServer in new[] { false, true })
        {
            async Task<string> FailAsync(TlsMode each)
            {
                using SocketPair sockets = await SocketPair.ConnectAsync();
                Socket raw = isServer ? sockets.Client : sockets.Server;
                await using SslStream stream = Modes.Create(each, new NetworkStream(isServer ? sockets.Server : sockets.Client));
                List<string> fallbacks = Fallbacks.Collect();
                Task shaking = isServer
                    ? stream.ShakeServerAsync(Handshakes.ServerOptions(Both))
                    : stream.ShakeClientAsync(Handshakes.ClientOptions(Both));
                if (!isServer)
                {
                    Assert.NotEqual(0, await raw.ReceiveAsync(new byte[16 * 1024]).WaitAsync(Limits.Wait));
                }

                await raw.SendAsync(new byte[] { 21, 3, 3, 0, 2, 2, s_descriptions[name] });
                raw.Shutdown(SocketShutdown.Send);
                Exception? e = await Record.ExceptionAsync(() => shaking.InTime($"a handshake that gets the alert {name}"));
                Assert.NotNull(e);
                if (each is TlsMode.DirectOpenSsl or TlsMode.Kernel)
                {
                    Assert.Empty(fallbacks);
                }

                Assert.IsType<AuthenticationException>(e);
                return Told(e);
            }

            string actual = await SideBySide.RunAsync(mode, FailAsync);
            Assert.EndsWith(isServer ? "unexpected message" : name, actual, StringComparison.Ordinal);
        }
    }

    [Theory]
    [MemberData(nameof(EveryMode))]
    public async Task A_close_notify_in_answer_to_the_ClientHello_fails_as_on_SslStream(TlsMode mode)
    {
        async Task<string> FailAsync(TlsMode each)
        {
            using SocketPair sockets = await SocketPair.ConnectAsync();
            await using SslStream stream = Modes.Create(each, new NetworkStream(sockets.Client));
            Task shaking = stream.ShakeClientAsync(Handshakes.ClientOptions(Both));
            Assert.NotEqual(0, await sockets.Server.ReceiveAsync(new byte[16 * 1024]).WaitAsync(Limits.Wait));
            await sockets.Server.SendAsync(new byte[] { 21, 3, 3, 0, 2, 1, 0 });
            sockets.Server.Shutdown(SocketShutdown.Send);
            return $"{new Ending(await Record.ExceptionAsync(() => shaking.InTime()), null)}";
        }

        string actual = await SideBySide.RunAsync(mode, FailAsync);
        Assert.NotEqual("good", actual);
    }

    /// <summary>On purpose unlike SslStream, which judges after the handshake and then just stops.</summary>
    [Theory]
    [MemberData(nameof(Verdicts))]
    public async Task A_refused_server_is_told_why(TlsMode mode, SslProtocols version, string verdict)
    {
        (string kind, _, string alert) = s_verdicts[verdict];
        await using Meeting meeting = await new Meeting(mode, TlsMode.Stock, version)
        {
            ClientValidation = verdict == "rejected by the callback" ? (_, _, _, _) => false : null,
            ServerOptions = s => s.ServerCertificateContext = Certificates.KindContext(kind),
        }.RunAsync();

        Assert.IsType<AuthenticationException>(meeting.ClientEnding.Handshake);
        AssertTold(mode, meeting.ServerEnding, alert);
    }

    [Theory]
    [MemberData(nameof(Verdicts))]
    public async Task A_refused_client_is_told_why(TlsMode mode, SslProtocols version, string verdict)
    {
        (_, string kind, string alert) = s_verdicts[verdict];
        await using Meeting meeting = await new Meeting(TlsMode.Stock, mode, version)
        {
            ClientOptions = c => c.ClientCertificateContext = Certificates.KindContext(kind),
            ServerOptions = s => s.ClientCertificateRequired = true,
            ServerValidation = verdict == "rejected by the callback" ? (_, _, _, _) => false : null,
        }.RunAsync();

        Assert.IsType<AuthenticationException>(meeting.ServerEnding.Handshake);
        AssertTold(mode, meeting.ClientEnding, alert);
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task A_client_at_the_wrong_host_says_bad_certificate(TlsMode mode, SslProtocols version)
    {
        await using Meeting meeting = await new Meeting(mode, TlsMode.Stock, version)
        {
            ClientOptions = c => c.TargetHost = "elsewhere.test",
        }.RunAsync();

        Assert.IsType<AuthenticationException>(meeting.ClientEnding.Handshake);
        AssertTold(mode, meeting.ServerEnding, "alert bad certificate");
    }

    /// <summary>
    /// The callback decides about an absent certificate, when the handshake is over: whoever tells the client by alert has to
    /// name this reason.
    /// </summary>
    [Theory]
    [MemberData(nameof(All))]
    public async Task A_client_without_the_required_certificate_is_told_nothing_else(TlsMode mode, SslProtocols version)
    {
        await using Meeting meeting = await new Meeting(TlsMode.Stock, mode, version)
        {
            ServerOptions = s => s.ClientCertificateRequired = true,
        }.RunAsync();

        Assert.IsType<AuthenticationException>(meeting.ServerEnding.Handshake);
        string told = $"{meeting.ClientEnding.Failure}";
        Assert.NotEqual("", told);
        Assert.True(
            !told.Contains(" alert ", StringComparison.Ordinal)
            || told.Contains(version == SslProtocols.Tls13 ? "certificate required" : "handshake failure", StringComparison.Ordinal),
            told);
    }

    private static Meeting Disagree(TlsMode client, TlsMode server, SslProtocols version, string what) => new(client, server, version)
    {
        ClientOptions = c =>
        {
            c.ApplicationProtocols = [SslApplicationProtocol.Http2];
#pragma warning disable CA1416 // Linux
            c.CipherSuitesPolicy = what != "cipher suite" ? null : new(
                [TlsCipherSuite.TLS_AES_128_GCM_SHA256, TlsCipherSuite.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256]);
        },
        ServerOptions = s =>
        {
            s.EnabledSslProtocols = what != "version" ? version : Both & ~version;
            s.ApplicationProtocols = what != "application protocol" ? null : [SslApplicationProtocol.Http11];
            s.CipherSuitesPolicy = what != "cipher suite" ? null : new(
                [TlsCipherSuite.TLS_AES_256_GCM_SHA384, TlsCipherSuite.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384]);
#pragma warning restore CA1416
        },
    };

    /// <summary>OpenSSL's reason inside of the exception, which names the alert; empty if there is none.</summary>
    private static string Told(Exception? e)
    {
        string reason = "";
        for (; e is not null; e = e.InnerException)
        {
            reason = e.Message.Contains("SSL routines:", StringComparison.Ordinal) ? e.Message.Split(':')[^1].Trim() : reason;
        }

        return reason;
    }

    private static void AssertTold(TlsMode mode, Ending peer, string alert)
    {
        Assert.False(peer.IsGood);
        if (mode is TlsMode.DirectOpenSsl or TlsMode.Kernel)
        {
            Assert.Contains(alert, $"{peer.Failure}", StringComparison.Ordinal);
        }
        else
        {
            Assert.DoesNotContain(" alert ", $"{peer.Failure}", StringComparison.Ordinal);
        }
    }
}

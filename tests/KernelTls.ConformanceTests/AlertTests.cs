using System.Net.Security;
using System.Net.Sockets;
using System.Security.Authentication;
using KernelTls.Tests;

namespace KernelTls.ConformanceTests;

/// <summary>
/// Tests the alerts that end handshakes (RFC 8446, section 6.2): which alert the peer receives, and which exception a
/// received alert causes.
/// </summary>
public class AlertTests
{
    private const SslProtocols Both = SslProtocols.Tls12 | SslProtocols.Tls13;

    /// <summary>The alerts that a peer may send first, by OpenSSL's names.</summary>
    private static readonly Dictionary<string, byte> s_descriptions =
        new byte[] { 10, 20, 22, 40, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51, 70, 71, 80, 86, 120 }.ToDictionary(AlertName.InOpenSsl);

    /// <summary>The certificates that are refused, and the alert that gives the reason.</summary>
    private const string Rejected = "rejected by the callback";

    // A refusal that is not caused by the certificate has no alert of its own: versions of .NET choose differently.
    private const string CallbackAlert = "alert certificate unknown";

    private static readonly Dictionary<string, (string Server, string Client, string Alert)> s_verdicts = new()
    {
        ["expired"] = ("expired", "expired client", "alert certificate expired"),
        ["not yet valid"] = ("not yet valid", "not yet valid", "alert certificate expired"),
        ["untrusted"] = ("untrusted", "other client", "alert unknown ca"),
        ["self-signed"] = ("self-signed", "self-signed", "alert unknown ca"),
        ["wrong usage"] = ("for clients only", "for servers only", "alert bad certificate"),
        [Rejected] = ("good", "second client", CallbackAlert),
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

    /// <summary>Tests the same alerts from a KtlsStream client.</summary>
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
                    ? stream.HandshakeAsServerAsync(Handshakes.ServerOptions(Both))
                    : stream.HandshakeAsClientAsync(Handshakes.ClientOptions(Both));
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

            string actual = await FailAsync(mode);
            string stock = await FailAsync(TlsMode.Stock);
            if (isServer && stock.Length == 0)
            {
                // .NET 11's server parses the record header itself and has no reason. KtlsStream has OpenSSL's.
                Assert.EndsWith(mode is TlsMode.DirectOpenSsl or TlsMode.Kernel ? "unexpected message" : "", actual, StringComparison.Ordinal);
            }
            else
            {
                Assert.Equal(stock, actual);
                Assert.EndsWith(isServer ? "unexpected message" : name, actual, StringComparison.Ordinal);
            }
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
            Task shaking = stream.HandshakeAsClientAsync(Handshakes.ClientOptions(Both));
            Assert.NotEqual(0, await sockets.Server.ReceiveAsync(new byte[16 * 1024]).WaitAsync(Limits.Wait));
            await sockets.Server.SendAsync(new byte[] { 21, 3, 3, 0, 2, 1, 0 });
            sockets.Server.Shutdown(SocketShutdown.Send);
            return $"{new Ending(await Record.ExceptionAsync(() => shaking.InTime()), null)}";
        }

        string actual = await SideBySide.RunAsync(mode, FailAsync);
        Assert.NotEqual("good", actual);
    }

    [Theory]
    [MemberData(nameof(Verdicts))]
    public async Task A_refused_server_is_told_why(TlsMode mode, SslProtocols version, string verdict)
    {
        (string kind, _, string alert) = s_verdicts[verdict];
        await AssertToldAsync(mode, alert, async each =>
        {
            await using Meeting meeting = await new Meeting(each, TlsMode.Stock, version)
            {
                ClientValidation = verdict == Rejected ? (_, _, _, _) => false : null,
                ServerOptions = s => s.ServerCertificateContext = Certificates.KindContext(kind),
            }.RunAsync();

            Assert.IsType<AuthenticationException>(meeting.ClientEnding.Handshake);
            return meeting.ServerEnding;
        });
    }

    [Theory]
    [MemberData(nameof(Verdicts))]
    public async Task A_refused_client_is_told_why(TlsMode mode, SslProtocols version, string verdict)
    {
        (_, string kind, string alert) = s_verdicts[verdict];
        await AssertToldAsync(mode, alert, async each =>
        {
            await using Meeting meeting = await new Meeting(TlsMode.Stock, each, version)
            {
                ClientOptions = c => c.ClientCertificateContext = Certificates.KindContext(kind),
                ServerOptions = s => s.ClientCertificateRequired = true,
                ServerValidation = verdict == Rejected ? (_, _, _, _) => false : null,
            }.RunAsync();

            Assert.IsType<AuthenticationException>(meeting.ServerEnding.Handshake);
            return meeting.ClientEnding;
        });
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task A_client_at_the_wrong_host_says_bad_certificate(TlsMode mode, SslProtocols version) =>
        await AssertToldAsync(mode, "alert bad certificate", async each =>
        {
            await using Meeting meeting = await new Meeting(each, TlsMode.Stock, version)
            {
                ClientOptions = c => c.TargetHost = "elsewhere.test",
            }.RunAsync();

            Assert.IsType<AuthenticationException>(meeting.ClientEnding.Handshake);
            return meeting.ServerEnding;
        });

    /// <summary>
    /// The callback decides about a missing certificate when the handshake has completed. An implementation that
    /// informs the client by an alert must send this reason.
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

    /// <summary>Returns OpenSSL's reason in the exception, which contains the alert, or an empty string.</summary>
    private static string Told(Exception? e)
    {
        string reason = "";
        for (; e is not null; e = e.InnerException)
        {
            reason = e.Message.Contains("SSL routines:", StringComparison.Ordinal) ? e.Message.Split(':')[^1].Trim() : reason;
        }

        return reason;
    }

    /// <summary>
    /// Asserts the alert that the peer received. SslStream of .NET 10 validates after the handshake and just closes;
    /// .NET 11 validates within it and sends an alert. KtlsStream sends the alert of the running version, or the reason
    /// for the refusal if that version sends none.
    /// </summary>
    private static async Task AssertToldAsync(TlsMode mode, string alert, Func<TlsMode, Task<Ending>> endPeerAsync)
    {
        Ending peer = await endPeerAsync(TlsMode.Stock);
        Assert.False(peer.IsGood);
        string stock = Told(peer.Failure);
        Assert.True(
            stock.Length == 0 || stock.EndsWith(alert, StringComparison.Ordinal) || alert == CallbackAlert, $"SslStream tells {stock}");

        peer = await endPeerAsync(mode);
        Assert.False(peer.IsGood);
        string told = Told(peer.Failure);
        if (mode is TlsMode.DirectOpenSsl or TlsMode.Kernel && stock.Length == 0)
        {
            Assert.EndsWith(alert, told, StringComparison.Ordinal);
        }
        else
        {
            Assert.Equal(stock, told);
        }
    }
}

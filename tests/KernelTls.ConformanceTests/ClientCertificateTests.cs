using System.Net.Security;
using System.Security.Authentication;
using System.Security.Cryptography.X509Certificates;
using KernelTls.Tests;

namespace KernelTls.ConformanceTests;

/// <summary>
/// Tests client certificates from a context and a collection: what is sent, what the server validates, and what each
/// end reports.
/// </summary>
[Trait("loop", "outer-kernel")]
public class ClientCertificateTests
{
    public static TheoryData<TlsMode, SslProtocols> All => Modes.All;

    public static TheoryData<TlsMode, SslProtocols, string> Sources => Modes.AllWith(
        "context", "collection", "context and collection", "overload with collection");

    public static TheoryData<TlsMode, SslProtocols, string> Collections => Modes.AllWith(
        "one", "two", "without key, then one", "only without key", "base type, then one", "chained", "other issuer",
        "other issuer, then one", "one, then other issuer", "expired", "empty", "null");

    public static TheoryData<TlsMode, SslProtocols, string> Keys => Modes.AllWith("RSA client", "second client", "chained client");

    public static TheoryData<TlsMode, SslProtocols, string> Refusals => Modes.AllWith(
        "untrusted", "expired", "self-signed", "wrong usage", "missing", "callback", "callback throws");

    [Theory]
    [MemberData(nameof(Sources))]
    public async Task The_certificate_arrives_and_both_ends_show_it(TlsMode mode, SslProtocols version, string source)
    {
        foreach ((TlsMode client, TlsMode server) in new[] { (mode, TlsMode.Stock), (TlsMode.Stock, mode) })
        {
            Calls calls = new();
            await using Meeting meeting = await new Meeting(client, server, version)
            {
                ClientOptions = c =>
                {
                    c.ClientCertificateContext = source.StartsWith("context", StringComparison.Ordinal) ? Certificates.ClientContext : null;
                    c.ClientCertificates = source switch
                    {
                        "collection" => [Certificates.Client],
                        "context and collection" => [Certificates.Kind("second client")],
                        _ => null,
                    };
                },
                ClientValidation = (_, _, _, _) => true,
                ClientHandshake = source != "overload with collection"
                    ? null
                    : s => s.AuthenticateAsClientAsync("localhost", [Certificates.Client], version, checkCertificateRevocation: false),
                ServerOptions = s =>
                {
                    s.ClientCertificateRequired = true;
                    s.AllowTlsResume = false;
                },
                ServerValidation = (_, certificate, chain, errors) =>
                {
                    calls.Add(certificate, chain!.ChainElements.Count, errors);
                    return errors == SslPolicyErrors.None;
                },
            }.SucceedAsync();

            Assert.Equal(["CN=a client | 2 | None"], calls.List);
            Assert.Equal(Certificates.Client.GetCertHashString(), meeting.Server.RemoteCertificate!.GetCertHashString());
            Assert.Equal(Certificates.Client.GetCertHashString(), meeting.Client.LocalCertificate!.GetCertHashString());
            Assert.True(meeting.Client.IsMutuallyAuthenticated);
            Assert.True(meeting.Server.IsMutuallyAuthenticated);
        }
    }

    /// <summary>
    /// On Linux, SslStream selects the first certificate if it has a key, and ignores the announced issuers.
    /// </summary>
    [Theory]
    [MemberData(nameof(Collections))]
    public async Task From_a_collection_the_certificate_is_taken_that_SslStream_takes(TlsMode mode, SslProtocols version, string what)
    {
        foreach (bool announced in new[] { false, true })
        {
            async Task<string> SeenAsync(TlsMode each)
            {
                await using Meeting meeting = await new Meeting(each, TlsMode.Stock, version)
                {
                    ClientOptions = c => c.ClientCertificates = CollectionOf(what),
                    ServerOptions = s =>
                    {
                        s.ClientCertificateRequired = true;
                        s.ServerCertificateContext = announced ? Announcing : Certificates.EcdsaContext;
                    },
                    ServerValidation = (_, _, _, _) => true,
                }.SucceedAsync();
                return $"{meeting.Server.RemoteCertificate?.Subject}, {meeting.Client.LocalCertificate?.Subject}, "
                    + $"{meeting.Server.IsMutuallyAuthenticated}, {meeting.Client.IsMutuallyAuthenticated}";
            }

            string actual = await SideBySide.RunAsync(mode, SeenAsync);
            string? first = what switch
            {
                "empty" or "null" => null,
                "without key, then one" or "only without key" or "base type, then one" => null,
                "other issuer" or "other issuer, then one" => "CN=another client",
                "chained" => "CN=a chained client",
                "expired" => "CN=an expired client",
                _ => "CN=a client",
            };
            Assert.Equal(first is null ? ", , False, False" : $"{first}, {first}, True, True", actual);
        }
    }

    [Theory]
    [MemberData(nameof(Keys))]
    public async Task Any_kind_of_key_signs(TlsMode mode, SslProtocols version, string kind)
    {
        await using Meeting meeting = await new Meeting(mode, mode, version)
        {
            ClientOptions = c => c.ClientCertificateContext = Certificates.KindContext(kind),
            ServerOptions = s => s.ClientCertificateRequired = true,
        }.SucceedAsync();

        Assert.Equal(Certificates.Kind(kind).GetCertHashString(), meeting.Server.RemoteCertificate!.GetCertHashString());
        Assert.True(meeting.Client.IsMutuallyAuthenticated);
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task The_context_s_intermediates_are_sent_along(TlsMode mode, SslProtocols version)
    {
        foreach (bool complete in new[] { true, false })
        {
            foreach ((TlsMode client, TlsMode server) in new[] { (mode, TlsMode.Stock), (TlsMode.Stock, mode) })
            {
                Calls calls = new();
                await using Meeting meeting = await new Meeting(client, server, version)
                {
                    ClientOptions = c => c.ClientCertificateContext = complete
                        ? Certificates.KindContext("chained client")
                        : Certificates.Context(Certificates.ChainedClient),
                    ServerOptions = s => s.ClientCertificateRequired = true,
                    ServerValidation = (_, certificate, chain, errors) =>
                    {
                        calls.Add(certificate, chain!.ChainElements.Count, errors);
                        return true;
                    },
                }.SucceedAsync();

                Assert.Equal(
                    [complete ? "CN=a chained client | 3 | None" : "CN=a chained client | 1 | RemoteCertificateChainErrors"], calls.List);
            }
        }
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task Without_a_certificate_the_server_s_callback_is_called_all_the_same(TlsMode mode, SslProtocols version)
    {
        foreach (bool required in new[] { true, false })
        {
            Calls calls = new();
            object? sender = null;
            await using Meeting meeting = await new Meeting(TlsMode.Stock, mode, version)
            {
                ServerOptions = s => s.ClientCertificateRequired = required,
                ServerValidation = (s, certificate, chain, errors) =>
                {
                    sender = s;
                    calls.Add(certificate, chain, errors);
                    return true;
                },
            }.SucceedAsync();

            Assert.Equal(["null | null | RemoteCertificateNotAvailable"], calls.List);
            Assert.Same(meeting.Server, sender);
            Assert.Null(meeting.Server.RemoteCertificate);
            Assert.False(meeting.Server.IsMutuallyAuthenticated);
            Assert.False(meeting.Client.IsMutuallyAuthenticated);
        }
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task A_callback_may_refuse_a_client_that_was_not_asked_for_a_certificate(TlsMode mode, SslProtocols version)
    {
        await using Meeting meeting = await new Meeting(TlsMode.Stock, mode, version)
        {
            ServerValidation = (_, _, _, _) => false,
        }.RunAsync();

        Assert.Equal("handshake: AuthenticationException", $"{meeting.ServerEnding}");
        Assert.False(meeting.ClientEnding.IsGood);
    }

    /// <summary>
    /// The time at which the client is informed may differ on purpose: KtlsStream on OpenSSL validates during the
    /// handshake.
    /// </summary>
    [Theory]
    [MemberData(nameof(Refusals))]
    public async Task A_server_that_refuses_the_client_fails_as_SslStream_does(TlsMode mode, SslProtocols version, string why)
    {
        async Task<string> EndAsync(TlsMode each)
        {
            await using Meeting meeting = await Refused(TlsMode.Stock, each, version, why).RunAsync();
            Assert.False(meeting.ClientEnding.IsGood);
            Assert.False(meeting.Server.IsAuthenticated);
            return $"{meeting.ServerEnding}";
        }

        string actual = await SideBySide.RunAsync(mode, EndAsync);
        Assert.StartsWith("handshake: ", actual, StringComparison.Ordinal);
        Assert.EndsWith(
            why == "callback throws" ? nameof(InsufficientMemoryException) : nameof(AuthenticationException), actual, StringComparison.Ordinal);
    }

    [Theory]
    [MemberData(nameof(Refusals))]
    public async Task A_client_that_is_refused_fails_when_and_as_SslStream_does(TlsMode mode, SslProtocols version, string why)
    {
        async Task<string> EndAsync(TlsMode each)
        {
            await using Meeting meeting = await Refused(each, TlsMode.Stock, version, why).RunAsync();
            Assert.NotNull(meeting.ServerEnding.Handshake);
            return $"{meeting.ClientEnding}";
        }

        string actual = await SideBySide.RunAsync(mode, EndAsync);
        Assert.NotEqual("good", actual);
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task Different_connections_of_one_server_have_different_clients(TlsMode mode, SslProtocols version)
    {
        string[] kinds = ["second client", "RSA client", "chained client"];
        Meeting[] meetings = [.. Enumerable.Range(0, 12).Select(i => new Meeting(TlsMode.Stock, mode, version)
        {
            ClientOptions = c => c.ClientCertificateContext = Certificates.KindContext(kinds[i % 3]),
            ServerOptions = s => s.ClientCertificateRequired = true,
        })];

        await Task.WhenAll(meetings.Select(m => m.SucceedAsync()));

        for (int i = 0; i < meetings.Length; i++)
        {
            Assert.Equal(Certificates.Kind(kinds[i % 3]).Subject, meetings[i].Server.RemoteCertificate!.Subject);
            await meetings[i].DisposeAsync();
        }
    }

    private static SslStreamCertificateContext Announcing { get; } = SslStreamCertificateContext.Create(
        Certificates.Ecdsa,
        null,
        offline: true,
        SslCertificateTrust.CreateForX509Collection([Certificates.Authority, Certificates.Intermediate], sendTrustInHandshake: true));

    private static X509CertificateCollection? CollectionOf(string what) => what switch
    {
        "one" => [Certificates.Client],
        "two" => [Certificates.Client, Certificates.Kind("second client")],
        "without key, then one" => [Certificates.WithoutKey(Certificates.Kind("second client")), Certificates.Client],
        "only without key" => [Certificates.WithoutKey(Certificates.Kind("second client"))],
        "base type, then one" => [Certificates.BaseType(Certificates.Kind("second client")), Certificates.Client],
        "chained" => [Certificates.ChainedClient],
        "other issuer" => [Certificates.OtherClient],
        "other issuer, then one" => [Certificates.OtherClient, Certificates.Client],
        "one, then other issuer" => [Certificates.Client, Certificates.OtherClient],
        "expired" => [Certificates.Kind("expired client")],
        "empty" => [],
        _ => null,
    };

    private static Meeting Refused(TlsMode client, TlsMode server, SslProtocols version, string why) => new(client, server, version)
    {
        ClientOptions = c => c.ClientCertificateContext = why switch
        {
            "untrusted" => Certificates.KindContext("other client"),
            "expired" => Certificates.KindContext("expired client"),
            "self-signed" => Certificates.KindContext("self-signed"),
            "wrong usage" => Certificates.KindContext("for servers only"),
            "missing" => null,
            _ => Certificates.ClientContext,
        },
        ServerOptions = s => s.ClientCertificateRequired = true,
        ServerValidation = why switch
        {
            "callback" => (_, _, _, _) => false,
            "callback throws" => (_, _, _, _) => throw new InsufficientMemoryException("thrown"),
            _ => null,
        },
    };
}

using System.Net.Security;
using System.Security.Authentication;
using System.Security.Cryptography.X509Certificates;
using KernelTls.Tests;

namespace KernelTls.ConformanceTests;

/// <summary>
/// Tests the client's LocalCertificateSelectionCallback: when it is called, with which arguments, and the effect of its
/// result. The server is SslStream.
/// </summary>
public class ClientCertificateCallbackTests
{
    public static TheoryData<TlsMode> EveryMode => [.. Modes.Every];

    public static TheoryData<TlsMode, SslProtocols> All => Modes.All;

    public static TheoryData<TlsMode, SslProtocols, string> Answers => Modes.AllWith(
        "certificate", "nothing", "only when asked", "without key", "base type", "from the collection", "chained");

    private static SslStreamCertificateContext Announcing { get; } = SslStreamCertificateContext.Create(
        Certificates.Ecdsa,
        null,
        offline: true,
        SslCertificateTrust.CreateForX509Collection([Certificates.Authority, Certificates.Intermediate], sendTrustInHandshake: true));

    /// <summary>
    /// Compares the calls and the result at both ends, with and without a server that requests a certificate or
    /// announces issuers.
    /// </summary>
    [Theory]
    [MemberData(nameof(Answers))]
    public async Task The_callback_is_called_as_by_SslStream_and_its_answer_is_used(TlsMode mode, SslProtocols version, string answer)
    {
        foreach ((bool asks, bool announces, bool byConstructor) in new[]
        {
            (false, false, false), (true, false, false), (true, true, false), (true, false, true),
        })
        {
            async Task<(string Calls, string? AtServer, string? AtClient, bool Mutual)> SeenAsync(TlsMode each)
            {
                Calls calls = new();
                bool sameSender = true;
                SslStream? sender = null;
                X509Certificate? Select(
                    object s, string host, X509CertificateCollection own, X509Certificate? remote, string[] issuers)
                {
                    sender ??= (SslStream)s;
                    sameSender &= ReferenceEquals(sender, s);
                    calls.Add(host, own, remote, issuers);
                    return Answer(answer, own, remote);
                }

                await using Meeting meeting = await new Meeting(each, TlsMode.Stock, version)
                {
                    ClientOptions = c =>
                    {
                        c.ClientCertificates = answer == "from the collection"
                            ? [Certificates.Client, Certificates.Kind("second client")]
                            : null;
                        c.LocalCertificateSelectionCallback = byConstructor ? null : Select;
                    },
                    ClientSelection = byConstructor ? Select : null,
                    ServerOptions = s =>
                    {
                        s.ClientCertificateRequired = asks;
                        s.ServerCertificateContext = announces ? Announcing : Certificates.EcdsaContext;
                    },
                    ServerValidation = (_, _, _, _) => true,
                }.SucceedAsync();
                Assert.True(sameSender);
                Assert.Same(meeting.Client, sender);
                return (
                    $"{calls}",
                    meeting.Server.RemoteCertificate?.Subject,
                    asks ? meeting.Client.LocalCertificate?.Subject : null,
                    meeting.Server.IsMutuallyAuthenticated);
            }

            (string Calls, string? AtServer, string? AtClient, bool Mutual) actual = await SideBySide.RunAsync(mode, SeenAsync);
            string? expected = answer switch
            {
                _ when !asks => null,
                "nothing" or "without key" or "base type" => null,
                "from the collection" => "CN=a second client",
                "chained" => "CN=a chained client",
                _ => "CN=a client",
            };
            Assert.Equal((expected, expected, expected is not null), (actual.AtServer, actual.AtClient, actual.Mutual));
            Assert.StartsWith("localhost | [", actual.Calls, StringComparison.Ordinal);
        }
    }

    /// <summary>
    /// The callback is called before the handshake, without information about the server, and again when the server
    /// requests a certificate, if there is none yet.
    /// </summary>
    [Theory]
    [MemberData(nameof(All))]
    public async Task The_second_call_knows_the_server_and_its_issuers(TlsMode mode, SslProtocols version)
    {
        Calls calls = new();
        await using Meeting meeting = await new Meeting(mode, TlsMode.Stock, version)
        {
            ClientOptions = c => c.LocalCertificateSelectionCallback = (_, host, own, remote, issuers) =>
            {
                calls.Add(host, own, remote, issuers);
                return remote is null ? null : Certificates.Client;
            },
            ServerOptions = s =>
            {
                s.ClientCertificateRequired = true;
                s.ServerCertificateContext = Announcing;
            },
        }.SucceedAsync();

        Assert.Equal(
            [
                "localhost | [] | null | []",
                $"localhost | [] | CN=localhost | [{Certificates.Authority.Subject}, {Certificates.Intermediate.Subject}]",
            ],
            calls.List);
        Assert.Equal(Certificates.Client.GetCertHashString(), meeting.Server.RemoteCertificate!.GetCertHashString());
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task What_the_callback_throws_is_how_the_handshake_fails(TlsMode mode, SslProtocols version)
    {
        foreach (bool atOnce in new[] { true, false })
        {
            InsufficientMemoryException thrown = new("thrown");
            async Task<string> EndAsync(TlsMode each)
            {
                await using Meeting meeting = await new Meeting(each, TlsMode.Stock, version)
                {
                    ClientOptions = c => c.LocalCertificateSelectionCallback =
                        (_, _, _, remote, _) => atOnce || remote is not null ? throw thrown : null!,
                    ServerOptions = s => s.ClientCertificateRequired = true,
                }.RunAsync();
                Assert.Same(thrown, meeting.ClientEnding.Handshake);
                Assert.NotNull(meeting.ServerEnding.Handshake);
                return $"{meeting.ClientEnding}";
            }

            Assert.StartsWith("handshake: ", await SideBySide.RunAsync(mode, EndAsync), StringComparison.Ordinal);
        }
    }

    [Theory]
    [MemberData(nameof(EveryMode))]
    public async Task Two_callbacks_are_one_too_many(TlsMode mode)
    {
        await using Meeting meeting = await new Meeting(mode, TlsMode.Stock, SslProtocols.Tls13)
        {
            ClientSelection = (_, _, _, _, _) => Certificates.Client,
            ClientOptions = c => c.LocalCertificateSelectionCallback = (_, _, _, _, _) => Certificates.Client,
        }.RunAsync();

        Assert.IsType<InvalidOperationException>(meeting.ClientEnding.Handshake);
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task The_same_callback_twice_is_one(TlsMode mode, SslProtocols version)
    {
        LocalCertificateSelectionCallback select = (_, _, _, _, _) => Certificates.Client;
        await using Meeting meeting = await new Meeting(mode, TlsMode.Stock, version)
        {
            ClientSelection = select,
            ClientOptions = c => c.LocalCertificateSelectionCallback = select,
            ServerOptions = s => s.ClientCertificateRequired = true,
        }.SucceedAsync();

        Assert.Equal(Certificates.Client.GetCertHashString(), meeting.Server.RemoteCertificate!.GetCertHashString());
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task A_context_makes_the_callback_unnecessary(TlsMode mode, SslProtocols version)
    {
        int calls = 0;
        await using Meeting meeting = await new Meeting(mode, TlsMode.Stock, version)
        {
            ClientOptions = c =>
            {
                c.ClientCertificateContext = Certificates.ClientContext;
                c.LocalCertificateSelectionCallback = (_, _, _, _, _) =>
                {
                    calls++;
                    return Certificates.Kind("second client");
                };
            },
            ServerOptions = s => s.ClientCertificateRequired = true,
        }.SucceedAsync();

        Assert.Equal(0, calls);
        Assert.Equal(Certificates.Client.GetCertHashString(), meeting.Server.RemoteCertificate!.GetCertHashString());
    }

    /// <summary>The callback may use the peer's certificate only during the call.</summary>
    [Theory]
    [MemberData(nameof(All))]
    public async Task The_server_s_certificate_is_disposed_of_after_the_call(TlsMode mode, SslProtocols version)
    {
        List<X509Certificate> kept = [];
        await using Meeting meeting = await new Meeting(mode, TlsMode.Stock, version)
        {
            ClientOptions = c => c.LocalCertificateSelectionCallback = (_, _, _, remote, _) =>
            {
                if (remote is not null)
                {
                    Assert.Equal(Certificates.Ecdsa.GetCertHashString(), remote.GetCertHashString());
                    kept.Add(remote);
                }

                return null!;
            },
            ServerOptions = s => s.ClientCertificateRequired = true,
            ServerValidation = (_, _, _, _) => true,
        }.SucceedAsync();

        Assert.Equal(IntPtr.Zero, Assert.Single(kept).Handle);
        Assert.Equal(Certificates.Ecdsa.GetCertHashString(), meeting.Client.RemoteCertificate!.GetCertHashString());
    }

    private static X509Certificate? Answer(string answer, X509CertificateCollection own, X509Certificate? remote) => answer switch
    {
        "certificate" => Certificates.Client,
        "only when asked" => remote is null ? null : Certificates.Client,
        "without key" => Certificates.WithoutKey(Certificates.Client),
        "base type" => Certificates.BaseType(Certificates.Client),
        "from the collection" => own[1],
        "chained" => Certificates.ChainedClient,
        _ => null,
    };
}

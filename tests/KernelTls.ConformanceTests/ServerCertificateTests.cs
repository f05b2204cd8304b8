using System.Net.Security;
using System.Security.Authentication;
using System.Security.Cryptography.X509Certificates;
using KernelTls.Tests;

namespace KernelTls.ConformanceTests;

/// <summary>Tests kinds of server certificates and keys, and the ways to pass them. The client is SslStream.</summary>
public class ServerCertificateTests
{
    public static TheoryData<TlsMode> EveryMode => [.. Modes.Every];

    public static TheoryData<TlsMode, SslProtocols> All => Modes.All;

    public static TheoryData<TlsMode, SslProtocols, string> Kinds => Modes.AllWith(
        "RSA 2048", "RSA 3072", "RSA 2048, signed with PSS", "ECDSA P-256", "ECDSA P-384", "ECDSA P-521", "ephemeral",
        "key attached", "from PEM");

    public static TheoryData<TlsMode, SslProtocols, string> Ways => Modes.AllWith("certificate", "context", "callback", "overload", "options callback");

    [Theory]
    [MemberData(nameof(Kinds))]
    public async Task A_certificate_of_any_kind_serves(TlsMode mode, SslProtocols version, string kind)
    {
        foreach (bool bare in new[] { false, true })
        {
            await using Meeting meeting = await new Meeting(TlsMode.Stock, mode, version)
            {
                ClientValidation = (_, _, _, _) => true,
                ServerOptions = s =>
                {
                    s.ServerCertificateContext = bare ? null : Certificates.KindContext(kind);
                    s.ServerCertificate = bare ? Certificates.Kind(kind) : null;
                },
            }.SucceedAsync();

            Assert.Equal(Certificates.Kind(kind).GetCertHashString(), meeting.Client.RemoteCertificate!.GetCertHashString());
            Assert.Equal(Certificates.Kind(kind).GetCertHashString(), meeting.Server.LocalCertificate!.GetCertHashString());
        }
    }

    [Theory]
    [MemberData(nameof(Ways))]
    public async Task However_it_is_given_both_ends_show_it(TlsMode mode, SslProtocols version, string way)
    {
        X509Certificate2 certificate = Certificates.Kind("RSA 2048");
        SslServerAuthenticationOptions Options()
        {
            SslServerAuthenticationOptions options = Handshakes.ServerOptions(version);
            options.ServerCertificateContext = way == "context" ? Certificates.KindContext("RSA 2048") : null;
            options.ServerCertificate = way is "certificate" or "options callback" ? certificate : null;
            options.ServerCertificateSelectionCallback = way == "callback" ? (_, _) => certificate : null;
            return options;
        }

        await using Meeting meeting = await new Meeting(TlsMode.Stock, mode, version)
        {
            ServerHandshake = s => way switch
            {
                "overload" => s.AuthenticateAsServerAsync(certificate, false, version, false),
                "options callback" => s.HandshakeAsServerAsync((_, _, _, _) => ValueTask.FromResult(Options()), null),
                _ => s.HandshakeAsServerAsync(Options()),
            },
        }.SucceedAsync();

        Assert.Equal(certificate.GetCertHashString(), meeting.Client.RemoteCertificate!.GetCertHashString());
        Assert.Equal(certificate.GetCertHashString(), meeting.Server.LocalCertificate!.GetCertHashString());
        Assert.Equal(version, meeting.Server.SslProtocol);
        Assert.False(meeting.Server.IsMutuallyAuthenticated);
    }

    [Theory]
    [MemberData(nameof(EveryMode))]
    public async Task A_certificate_without_key_fails_as_on_SslStream(TlsMode mode)
    {
        foreach (bool baseType in new[] { false, true })
        {
            await using Meeting meeting = await new Meeting(TlsMode.Stock, mode, SslProtocols.Tls13)
            {

                ServerOptions = s =>
                {
                    s.ServerCertificateContext = null;
                    s.ServerCertificate = baseType ? Certificates.BaseType(Certificates.Ecdsa) : Certificates.WithoutKey(Certificates.Ecdsa);
                },
            }.RunAsync();

            Assert.IsType<AuthenticationException>(meeting.ServerEnding.Handshake);
            Assert.NotNull(meeting.ClientEnding.Handshake);
        }
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task The_context_s_intermediates_are_sent_and_no_root(TlsMode mode, SslProtocols version)
    {
        foreach (bool complete in new[] { true, false })
        {
            async Task<string> SeeAsync(TlsMode each)
            {
                Calls calls = new();
                await using Meeting meeting = await new Meeting(TlsMode.Stock, each, version)
                {
                    ClientValidation = (_, certificate, chain, errors) =>
                    {
                        // .NET 10's client adds the leaf, too.
                        calls.Add(certificate, chain!.ChainPolicy.ExtraStore, chain.ChainElements.Count, errors);
                        return true;
                    },
                    ServerOptions = s => s.ServerCertificateContext = complete
                        ? Certificates.KindContext("chained")
                        : Certificates.Context(Certificates.Kind("chained")),
                }.SucceedAsync();
                return Assert.Single(calls.List);
            }

            string seen = await SideBySide.RunAsync(mode, SeeAsync);
            Assert.Equal(complete, seen.Contains(Certificates.Intermediate.Subject, StringComparison.Ordinal));
            Assert.EndsWith(complete ? " | 3 | None" : " | 1 | RemoteCertificateChainErrors", seen, StringComparison.Ordinal);
        }
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task Bare_certificates_of_two_kinds_do_not_get_mixed_up(TlsMode mode, SslProtocols version)
    {
        string[] kinds = ["RSA 2048", "ECDSA P-256", "ECDSA P-384"];
        Meeting[] meetings = [.. Enumerable.Range(0, 12).Select(i => new Meeting(TlsMode.Stock, mode, version)
        {
            ServerOptions = s =>
            {
                s.ServerCertificateContext = null;
                s.ServerCertificate = Certificates.Kind(kinds[i % 3]);
            },
        })];

        await Task.WhenAll(meetings.Select(m => m.SucceedAsync()));

        for (int i = 0; i < meetings.Length; i++)
        {
            Assert.Equal(Certificates.Kind(kinds[i % 3]).GetCertHashString(), meetings[i].Client.RemoteCertificate!.GetCertHashString());
            await meetings[i].DisposeAsync();
        }
    }

    /// <summary>The application keeps ownership of its certificate.</summary>
    [Theory]
    [MemberData(nameof(All))]
    public async Task A_bare_certificate_is_still_usable_afterwards(TlsMode mode, SslProtocols version)
    {
        using X509Certificate2 own = X509CertificateLoader.LoadPkcs12(
            Certificates.Rsa.Export(X509ContentType.Pkcs12), null, X509KeyStorageFlags.EphemeralKeySet);
        for (int i = 0; i < 2; i++)
        {
            await using Meeting meeting = await new Meeting(TlsMode.Stock, mode, version)
            {
                ServerOptions = s =>
                {
                    s.ServerCertificateContext = null;
                    s.ServerCertificate = own;
                },
            }.SucceedAsync();
            Assert.Same(own, meeting.Server.LocalCertificate);
        }

        Assert.True(own.HasPrivateKey);
        Assert.Equal(Certificates.Rsa.GetCertHashString(), own.GetCertHashString());
    }

    /// <summary>The certificate is disposed while the connection is open, as SslStream allows.</summary>
    [Theory]
    [MemberData(nameof(All))]
    public async Task A_certificate_disposed_of_after_the_handshake_does_not_end_the_connection(TlsMode mode, SslProtocols version)
    {
        X509Certificate2 own = X509CertificateLoader.LoadPkcs12(Certificates.Rsa.Export(X509ContentType.Pkcs12), null);
        await using Meeting meeting = await new Meeting(TlsMode.Stock, mode, version)
        {
            ServerOptions = s =>
            {
                s.ServerCertificateContext = null;
                s.ServerCertificate = own;
            },
        }.SucceedAsync();

        own.Dispose();

        await meeting.Server.WriteAsync(new byte[] { 1 }).InTime();
        Assert.Equal(1, await meeting.Client.ReadAsync(new byte[2]).InTime());
        await meeting.Client.WriteAsync(new byte[] { 1 }).InTime();
        Assert.Equal(1, await meeting.Server.ReadAsync(new byte[2]).InTime());
    }
}

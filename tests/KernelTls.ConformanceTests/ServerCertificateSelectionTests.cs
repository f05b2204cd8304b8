using System.Net.Security;
using System.Security.Authentication;
using System.Security.Cryptography.X509Certificates;
using KernelTls.Tests;

namespace KernelTls.ConformanceTests;

/// <summary>Tests a server whose certificate is selected by a callback. The client is SslStream.</summary>
public class ServerCertificateSelectionTests
{
    public static TheoryData<TlsMode> EveryMode => [.. Modes.Every];

    public static TheoryData<TlsMode, SslProtocols> All => Modes.All;

    public static TheoryData<TlsMode, SslProtocols, string> Hosts => Modes.AllWith(
        "localhost", "LocalHost", "bücher.test", "xn--bcher-kva.test", "127.0.0.1", "::1", "");

    public static TheoryData<TlsMode, SslProtocols, string> Failures => Modes.AllWith(
        "null", "throws", "throws an authentication failure", "throws a cancellation", "without key", "base type");

    public static TheoryData<TlsMode, string> Conflicts => Modes.With("certificate", "context", "constructor's callback", "all");

    [Theory]
    [MemberData(nameof(Hosts))]
    public async Task The_callback_is_called_once_with_the_stream_and_the_name(TlsMode mode, SslProtocols version, string host)
    {
        async Task<string> CallAsync(TlsMode each)
        {
            Calls calls = new();
            object? sender = null;
            await using Meeting meeting = await new Meeting(TlsMode.Stock, each, version)
            {
                ClientOptions = c => c.TargetHost = host,
                ClientValidation = (_, _, _, _) => true,
                ServerOptions = s => Select(s, (from, name) =>
                {
                    sender = from;
                    calls.Add(name, ((SslStream)from).TargetHostName, ((SslStream)from).IsServer, ((SslStream)from).IsAuthenticated);
                    return Certificates.Rsa;
                }),
            }.SucceedAsync();
            Assert.Same(meeting.Server, sender);
            Assert.Equal(Certificates.Rsa.GetCertHashString(), meeting.Client.RemoteCertificate!.GetCertHashString());
            Assert.Equal(Certificates.Rsa.GetCertHashString(), meeting.Server.LocalCertificate!.GetCertHashString());
            return Assert.Single(calls.List);
        }

        string actual = await SideBySide.RunAsync(mode, CallAsync);
        string name = host switch
        {
            "127.0.0.1" or "::1" => "",
            "xn--bcher-kva.test" => "bücher.test",
            _ => host,
        };
        Assert.Equal($"{name} | {name} | True | False", actual, ignoreCase: true);
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task The_callback_chooses_by_name(TlsMode mode, SslProtocols version)
    {
        foreach ((string host, X509Certificate2 expected) in new[]
        {
            ("localhost", Certificates.Ecdsa), ("elsewhere.test", Certificates.WrongName), ("127.0.0.1", Certificates.Rsa),
            ("elsewhere.test", Certificates.WrongName),
        })
        {
            await using Meeting meeting = await new Meeting(TlsMode.Stock, mode, version)
            {
                ClientOptions = c => c.TargetHost = host,
                ServerOptions = s => Select(s, (_, name) => name switch
                {
                    "localhost" => Certificates.Ecdsa,
                    "elsewhere.test" => Certificates.WrongName,
                    _ => Certificates.Rsa,
                }),
            }.SucceedAsync();

            Assert.Equal(expected.GetCertHashString(), meeting.Client.RemoteCertificate!.GetCertHashString());
        }
    }

    [Theory]
    [MemberData(nameof(Failures))]
    public async Task A_callback_that_chooses_nothing_of_use_fails_the_handshake_as_on_SslStream(
        TlsMode mode, SslProtocols version, string what)
    {
        InsufficientMemoryException thrown = new("thrown");
        async Task<string> EndAsync(TlsMode each)
        {
            await using Meeting meeting = await new Meeting(TlsMode.Stock, each, version)
            {
                ServerOptions = s => Select(s, (_, _) => what switch
                {
                    "null" => null!,
                    "throws" => throw thrown,
                    "throws an authentication failure" => throw new AuthenticationException("thrown"),
                    "throws a cancellation" => throw new OperationCanceledException("thrown"),
                    "without key" => Certificates.WithoutKey(Certificates.Ecdsa),
                    _ => Certificates.BaseType(Certificates.Ecdsa),
                }),
            }.RunAsync();
            Assert.NotNull(meeting.ClientEnding.Handshake);
            Assert.False(meeting.Server.IsAuthenticated);
            if (what == "throws")
            {
                Assert.Same(thrown, meeting.ServerEnding.Handshake);
            }
            else if (what.StartsWith("throws", StringComparison.Ordinal))
            {
                Assert.Equal("thrown", meeting.ServerEnding.Handshake!.Message);
            }

            return $"{meeting.ServerEnding}";
        }

        string actual = await SideBySide.RunAsync(mode, EndAsync);
        Assert.StartsWith("handshake: ", actual, StringComparison.Ordinal);
    }

    [Theory]
    [MemberData(nameof(Conflicts))]
    public async Task Two_sources_of_certificates_are_one_too_many(TlsMode mode, string what)
    {
        await using Meeting meeting = await new Meeting(TlsMode.Stock, mode, SslProtocols.Tls13)
        {
            ServerSelection = what is "constructor's callback" or "all" ? (_, _, _, _, _) => Certificates.Rsa : null,
            ServerOptions = s =>
            {
                s.ServerCertificateContext = what is "context" or "all" ? Certificates.EcdsaContext : null;
                s.ServerCertificate = what is "certificate" or "all" ? Certificates.Ecdsa : null;
                s.ServerCertificateSelectionCallback = (_, _) => Certificates.Rsa;
            },
        }.RunAsync();

        Assert.IsType<InvalidOperationException>(meeting.ServerEnding.Handshake);
        Assert.NotNull(meeting.ClientEnding.Handshake);
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task A_context_goes_before_a_certificate(TlsMode mode, SslProtocols version)
    {
        await using Meeting meeting = await new Meeting(TlsMode.Stock, mode, version)
        {
            ServerOptions = s => (s.ServerCertificate, s.ServerCertificateContext) = (Certificates.Rsa, Certificates.EcdsaContext),
        }.SucceedAsync();

        Assert.Equal(Certificates.Ecdsa.GetCertHashString(), meeting.Client.RemoteCertificate!.GetCertHashString());
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task The_constructor_s_callback_chooses_given_the_options_certificate(TlsMode mode, SslProtocols version)
    {
        foreach (bool byContext in new[] { false, true })
        {
            Calls calls = new();
            object? sender = null;
            await using Meeting meeting = await new Meeting(TlsMode.Stock, mode, version)
            {
                ServerSelection = (from, host, certificates, remote, issuers) =>
                {
                    sender = from;
                    calls.Add(host, certificates, remote, issuers);
                    return Certificates.Rsa;
                },
                ServerOptions = s =>
                {
                    s.ServerCertificateContext = byContext ? Certificates.KindContext("ECDSA P-384") : null;
                    s.ServerCertificate = byContext ? null : Certificates.Ecdsa;
                },
            }.SucceedAsync();

            Assert.Same(meeting.Server, sender);
            Assert.Equal([" | [CN=localhost] | null | []"], calls.List);
            Assert.Equal(Certificates.Rsa.GetCertHashString(), meeting.Client.RemoteCertificate!.GetCertHashString());
            Assert.Equal(Certificates.Rsa.GetCertHashString(), meeting.Server.LocalCertificate!.GetCertHashString());
        }
    }

    [Theory]
    [MemberData(nameof(Failures))]
    public async Task The_constructor_s_callback_that_chooses_nothing_of_use_fails_the_handshake(
        TlsMode mode, SslProtocols version, string what)
    {
        async Task<string> EndAsync(TlsMode each)
        {
            await using Meeting meeting = await new Meeting(TlsMode.Stock, each, version)
            {
                ServerSelection = (_, _, _, _, _) => what switch
                {
                    "null" => null!,
                    "throws" => throw new InsufficientMemoryException("thrown"),
                    "throws an authentication failure" => throw new AuthenticationException("thrown"),
                    "throws a cancellation" => throw new OperationCanceledException("thrown"),
                    "without key" => Certificates.WithoutKey(Certificates.Ecdsa),
                    _ => Certificates.BaseType(Certificates.Ecdsa),
                },
            }.RunAsync();
            Assert.NotNull(meeting.ClientEnding.Handshake);
            return $"{meeting.ServerEnding}";
        }

        string actual = await SideBySide.RunAsync(mode, EndAsync);
        Assert.StartsWith("handshake: ", actual, StringComparison.Ordinal);
    }

    [Theory]
    [MemberData(nameof(EveryMode))]
    public async Task The_constructor_s_callback_needs_no_other_certificate_except_on_SslStream(TlsMode mode)
    {
        async Task<string> EndAsync(TlsMode each)
        {
            await using Meeting meeting = await new Meeting(TlsMode.Stock, each, SslProtocols.Tls13)
            {
                ServerSelection = (_, _, _, _, _) => Certificates.Rsa,
                ServerOptions = s => s.ServerCertificateContext = null,
            }.RunAsync();
            return $"{meeting.ServerEnding}";
        }

        Assert.Equal(Modes.OnOpenSsl.Contains(mode) ? "good" : "handshake: NullReferenceException", await EndAsync(mode));
    }

    private static void Select(SslServerAuthenticationOptions options, ServerCertificateSelectionCallback callback)
    {
        options.ServerCertificateContext = null;
        options.ServerCertificateSelectionCallback = callback;
    }
}

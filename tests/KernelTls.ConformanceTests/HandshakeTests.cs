using System.Net.Security;
using System.Net.Sockets;
using System.Security.Authentication;
using System.Security.Cryptography.X509Certificates;
using KernelTls.Tests;

namespace KernelTls.ConformanceTests;

public class HandshakeTests
{
    public static TheoryData<TlsMode, SslProtocols> All => Modes.All;

    public static TheoryData<TlsMode> EveryMode => [.. Modes.Every];

    [Theory]
    [MemberData(nameof(All))]
    public async Task Both_ends_know_what_was_negotiated(TlsMode mode, SslProtocols version)
    {
        await using TlsPair pair = await TlsPair.ConnectAsync(
            mode,
            version,
            client => client.ApplicationProtocols = [SslApplicationProtocol.Http2, SslApplicationProtocol.Http11],
            server => server.ApplicationProtocols = [SslApplicationProtocol.Http11]);

        foreach (SslStream stream in new[] { pair.Client, pair.Server })
        {
            Assert.Equal(version, stream.SslProtocol);
            Assert.Equal(SslApplicationProtocol.Http11, stream.NegotiatedApplicationProtocol);
            Assert.Equal("localhost", stream.TargetHostName);
            Assert.True(stream.IsAuthenticated);
            Assert.True(stream.IsEncrypted);
            Assert.True(stream.IsSigned);
            Assert.True(stream.CanRead);
            Assert.True(stream.CanWrite);
            Assert.True(stream.CanTimeout);
            Assert.False(stream.CanSeek);
        }

        Assert.Equal(pair.Client.NegotiatedCipherSuite, pair.Server.NegotiatedCipherSuite);
        Assert.False(pair.Client.IsServer);
        Assert.True(pair.Server.IsServer);
        Assert.Equal(Certificates.Ecdsa.GetCertHashString(), pair.Client.RemoteCertificate!.GetCertHashString());
        Assert.Equal(Certificates.Ecdsa.GetCertHashString(), pair.Server.LocalCertificate!.GetCertHashString());
        Assert.Null(pair.Server.RemoteCertificate);
        Assert.Null(pair.Client.LocalCertificate);
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task Without_a_common_interest_in_ALPN_there_is_none(TlsMode mode, SslProtocols version)
    {
        await using TlsPair pair = await TlsPair.ConnectAsync(
            mode, version, client => client.ApplicationProtocols = [SslApplicationProtocol.Http2]);

        Assert.Equal(default, pair.Client.NegotiatedApplicationProtocol);
        Assert.Equal(default, pair.Server.NegotiatedApplicationProtocol);
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task The_server_s_order_of_application_protocols_counts(TlsMode mode, SslProtocols version)
    {
        await using TlsPair pair = await TlsPair.ConnectAsync(
            mode,
            version,
            client => client.ApplicationProtocols = [SslApplicationProtocol.Http11, SslApplicationProtocol.Http2],
            server => server.ApplicationProtocols = [SslApplicationProtocol.Http2, SslApplicationProtocol.Http11]);

        Assert.Equal(SslApplicationProtocol.Http2, pair.Client.NegotiatedApplicationProtocol);
        Assert.Equal(SslApplicationProtocol.Http2, pair.Server.NegotiatedApplicationProtocol);
    }

    /// <summary>Compares every property with that of SslStream under the same options.</summary>
    [Theory]
    [MemberData(nameof(All))]
    public async Task The_properties_are_those_of_SslStream(TlsMode mode, SslProtocols version)
    {
        foreach (TlsCipherSuite suite in version == SslProtocols.Tls13
            ? new[] { TlsCipherSuite.TLS_AES_128_GCM_SHA256, TlsCipherSuite.TLS_CHACHA20_POLY1305_SHA256 }
            : [TlsCipherSuite.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, TlsCipherSuite.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256])
        {
            foreach (bool mutual in new[] { false, true })
            {
                await using TlsPair expected = await ConnectAsync(TlsMode.Stock, version, suite, mutual, mutual);
                await using TlsPair actual = await ConnectAsync(mode, version, suite, mutual, mutual);

                Assert.Equal(Describe(expected.Client), Describe(actual.Client));
                Assert.Equal(Describe(expected.Server), Describe(actual.Server));
            }
        }
    }

    [Theory]
    [MemberData(nameof(EveryMode))]
    public async Task The_target_host_is_published_as_SslStream_does(TlsMode mode)
    {
        foreach (string? host in new[] { "LocalHost", "bücher.test", "xn--bcher-kva.test", "127.0.0.1", "::1", "", null })
        {
            async Task<(string, string)> NamesAsync(TlsMode each)
            {
                await using TlsPair pair = await TlsPair.ConnectAsync(each, SslProtocols.Tls13, client =>
                {
                    client.TargetHost = host;
                    client.RemoteCertificateValidationCallback = (_, _, _, _) => true;
                });
                return (pair.Client.TargetHostName, pair.Server.TargetHostName);
            }

            Assert.Equal(await NamesAsync(TlsMode.Stock), await NamesAsync(mode));
        }

        await using TlsPair dotted = await TlsPair.ConnectAsync(
            mode, SslProtocols.Tls13, client => client.TargetHost = "localhost.");
        Assert.Equal("localhost.", dotted.Client.TargetHostName);
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task No_server_name_is_sent_for_an_address(TlsMode mode, SslProtocols version)
    {
        await using TlsPair pair = await TlsPair.ConnectAsync(mode, version, client => client.TargetHost = "127.0.0.1");

        Assert.Equal("127.0.0.1", pair.Client.TargetHostName);
        Assert.Equal("", pair.Server.TargetHostName);
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task A_blocking_handshake_does_as_well(TlsMode mode, SslProtocols version)
    {
        await using TlsPair pair = await TlsPair.CreateAsync(mode, mode);
        await Task.WhenAll(
            Limits.Blocking(() => pair.Client.ShakeClient(Handshakes.ClientOptions(version))),
            Limits.Blocking(() => pair.Server.ShakeServer(Handshakes.ServerOptions(version)))).InTime();
        Modes.AssertIn(mode, pair.Client);
        Modes.AssertIn(mode, pair.Server);

        await Limits.Blocking(() => pair.Client.Write("hello"u8)).InTime();
        byte[] received = new byte[5];
        await Limits.Blocking(() => pair.Server.ReadExactly(received)).InTime();
        Assert.Equal("hello"u8.ToArray(), received);
    }

    [Theory]
    [MemberData(nameof(EveryMode))]
    public async Task The_overloads_from_before_the_options_work(TlsMode mode)
    {
        const SslProtocols Any = SslProtocols.Tls12 | SslProtocols.Tls13;
        X509Certificate2 own = Certificates.Ecdsa;
        (Func<SslStream, Task> Client, Func<SslStream, Task> Server)[] ways =
        [
            (c => c.AuthenticateAsClientAsync("localhost"), s => s.AuthenticateAsServerAsync(own)),
            (c => c.AuthenticateAsClientAsync("localhost", null, false), s => s.AuthenticateAsServerAsync(own, false, false)),
            (c => c.AuthenticateAsClientAsync("localhost", null, Any, false), s => s.AuthenticateAsServerAsync(own, false, Any, false)),
            (c => Limits.Blocking(() => c.AuthenticateAsClient("localhost")), s => Limits.Blocking(() => s.AuthenticateAsServer(own))),
            (c => Limits.Blocking(() => c.AuthenticateAsClient("localhost", null, false)),
                s => Limits.Blocking(() => s.AuthenticateAsServer(own, false, false))),
            (c => Limits.Blocking(() => c.AuthenticateAsClient("localhost", null, Any, false)),
                s => Limits.Blocking(() => s.AuthenticateAsServer(own, false, Any, false))),
            (c => Task.Factory.FromAsync((cb, st) => c.BeginAuthenticateAsClient("localhost", cb, st), c.EndAuthenticateAsClient, null),
                s => Task.Factory.FromAsync((cb, st) => s.BeginAuthenticateAsServer(own, cb, st), s.EndAuthenticateAsServer, null)),
            (c => Task.Factory.FromAsync((cb, st) => c.BeginAuthenticateAsClient("localhost", null, false, cb, st), c.EndAuthenticateAsClient, null),
                s => Task.Factory.FromAsync((cb, st) => s.BeginAuthenticateAsServer(own, false, false, cb, st), s.EndAuthenticateAsServer, null)),
            (c => Task.Factory.FromAsync((cb, st) => c.BeginAuthenticateAsClient("localhost", null, Any, false, cb, st), c.EndAuthenticateAsClient, null),
                s => Task.Factory.FromAsync((cb, st) => s.BeginAuthenticateAsServer(own, false, Any, false, cb, st), s.EndAuthenticateAsServer, null)),
        ];
        foreach ((Func<SslStream, Task> client, Func<SslStream, Task> server) in ways)
        {
            using SocketPair sockets = await SocketPair.ConnectAsync();
            await using SslStream c = Modes.Create(mode, new NetworkStream(sockets.Client), validation: (_, _, _, _) => true);
            await using SslStream s = Modes.Create(mode, new NetworkStream(sockets.Server));

            await Task.WhenAll(client(c), server(s)).InTime();

            Modes.AssertIn(mode, c);
            Modes.AssertIn(mode, s);
            await c.WriteAsync(new byte[] { 7 }).InTime();
            Assert.Equal(1, await s.ReadAsync(new byte[2]).InTime());
        }
    }

    [Fact]
    public async Task A_handshake_started_through_a_variable_of_type_SslStream_is_the_base_class_s()
    {
        await using TlsPair pair = await TlsPair.CreateAsync(TlsMode.DirectOpenSsl, TlsMode.DirectOpenSsl);
        SslStream client = pair.Client;
        SslStream server = pair.Server;

        await Task.WhenAll(
            client.AuthenticateAsClientAsync(Handshakes.ClientOptions(SslProtocols.None)),
            server.AuthenticateAsServerAsync(Handshakes.ServerOptions(SslProtocols.None))).InTime();

        Assert.Equal(KtlsOffload.Managed(KtlsFallbackReason.AuthenticatedAsBase), ((KtlsStream)client).Offload);
        Assert.Equal(KtlsOffload.Managed(KtlsFallbackReason.AuthenticatedAsBase), ((KtlsStream)server).Offload);
        await client.WriteAsync(new byte[] { 7 }).InTime();
        Assert.Equal(1, await server.ReadAsync(new byte[2]).InTime());
    }

    [Theory]
    [InlineData("renegotiation")]
    [InlineData("inner")]
    public async Task What_is_not_offloaded_works_as_SslStream_does_and_says_why(string what)
    {
        using SocketPair sockets = await SocketPair.ConnectAsync();
        Stream clientInner = new NetworkStream(sockets.Client);
        SslClientAuthenticationOptions clientOptions = Handshakes.ClientOptions(SslProtocols.None);
        SslServerAuthenticationOptions serverOptions = Handshakes.ServerOptions(SslProtocols.None);
        KtlsFallbackReason client = KtlsFallbackReason.DisabledByMode;
        KtlsFallbackReason server = KtlsFallbackReason.DisabledByMode;
        switch (what)
        {
            case "renegotiation":
                server = KtlsFallbackReason.Renegotiation;
                serverOptions.AllowRenegotiation = true;
                break;
            case "inner":
                client = KtlsFallbackReason.NotSocketStream;
                clientInner = new BufferedStream(clientInner);
                break;
            default:
                Assert.Fail(what);
                break;
        }

        await using KtlsStream c = (KtlsStream)Modes.Create(TlsMode.DirectOpenSsl, clientInner);
        await using KtlsStream s = (KtlsStream)Modes.Create(TlsMode.DirectOpenSsl, new NetworkStream(sockets.Server));
        await Task.WhenAll(c.AuthenticateAsClientAsync(clientOptions), s.AuthenticateAsServerAsync(serverOptions)).InTime();

        Assert.Equal(client, c.Offload.SendFallbackReason);
        Assert.Equal(server, s.Offload.ReceiveFallbackReason);
        await c.WriteAsync(new byte[] { 7 }).InTime();
        await c.FlushAsync().InTime();
        Assert.Equal(1, await s.ReadAsync(new byte[2]).InTime());
    }

    [Fact]
    public async Task Options_chosen_during_the_handshake_are_offloaded()
    {
        await using TlsPair pair = await TlsPair.CreateAsync(TlsMode.Stock, TlsMode.DirectOpenSsl);
        KtlsStream server = (KtlsStream)pair.Server;
        SslStream? seen = null;

        await Task.WhenAll(
            pair.Client.HandshakeAsClientAsync(Handshakes.ClientOptions(SslProtocols.None)),
            server.AuthenticateAsServerAsync(
                (stream, hello, _, _) =>
                {
                    seen = stream;
                    Assert.Equal("localhost", hello.ServerName);
                    return ValueTask.FromResult(Handshakes.ServerOptions(SslProtocols.None));
                },
                null)).InTime();

        Assert.Same(server, seen);
        Modes.AssertIn(TlsMode.DirectOpenSsl, server);
    }

    [Theory]
    [MemberData(nameof(EveryMode))]
    public async Task Each_end_may_be_the_other_kind(TlsMode mode)
    {
        foreach (SslProtocols version in new[] { SslProtocols.Tls12, SslProtocols.Tls13 })
        {
            foreach (bool asClient in new[] { true, false })
            {
                await using TlsPair pair = await TlsPair.ConnectAsync(
                    asClient ? mode : TlsMode.Stock, asClient ? TlsMode.Stock : mode, version);
                Task both = Task.WhenAll(Pattern.SendAsync(pair.Client, 100_000), Pattern.SendAsync(pair.Server, 100_000));
                await Pattern.ReceiveAsync(pair.Server, 100_000).InTime();
                await Pattern.ReceiveAsync(pair.Client, 100_000).InTime();
                await both.InTime();
                await pair.Client.ShutdownAsync().InTime();
                Assert.Equal(0, await pair.Server.ReadAsync(new byte[1]).InTime());
                await pair.Server.ShutdownAsync().InTime();
                Assert.Equal(0, await pair.Client.ReadAsync(new byte[1]).InTime());
            }
        }
    }

    [Theory]
    [MemberData(nameof(EveryMode))]
    public async Task A_server_that_gives_out_tickets_takes_them_back(TlsMode mode)
    {
        for (int i = 0; i < 3; i++)
        {
            await using TlsPair pair = await TlsPair.ConnectAsync(
                TlsMode.Stock, mode, SslProtocols.Tls13, client => client.AllowTlsResume = true);
            await pair.Server.WriteAsync(new byte[] { 1 }).InTime();
            Assert.Equal(1, await pair.Client.ReadAsync(new byte[2]).InTime());
            await pair.Client.WriteAsync(new byte[] { 1 }).InTime();
            Assert.Equal(1, await pair.Server.ReadAsync(new byte[2]).InTime());
        }
    }

    private static Task<TlsPair> ConnectAsync(
        TlsMode mode, SslProtocols version, TlsCipherSuite suite, bool clientHasCertificate, bool serverAsks) =>
        TlsPair.ConnectAsync(
            mode,
            version,
            client =>
            {
                client.CipherSuitesPolicy = Only(suite);
                client.ClientCertificateContext = clientHasCertificate ? Certificates.ClientContext : null;
            },
            server =>
            {
                server.CipherSuitesPolicy = Only(suite);
                server.ClientCertificateRequired = serverAsks;
            });

#pragma warning disable CA1416 // Linux
    private static CipherSuitesPolicy Only(TlsCipherSuite suite) => new([suite]);
#pragma warning restore CA1416

    private static string Describe(SslStream stream) => string.Join(
        '\n',
        $"{nameof(stream.SslProtocol)} {stream.SslProtocol}",
        $"{nameof(stream.NegotiatedCipherSuite)} {stream.NegotiatedCipherSuite}",
        $"{nameof(stream.NegotiatedApplicationProtocol)} {stream.NegotiatedApplicationProtocol}",
        $"{nameof(stream.TargetHostName)} {stream.TargetHostName}",
        $"{nameof(stream.IsAuthenticated)} {stream.IsAuthenticated}",
        $"{nameof(stream.IsMutuallyAuthenticated)} {stream.IsMutuallyAuthenticated}",
        $"{nameof(stream.IsEncrypted)} {stream.IsEncrypted}",
        $"{nameof(stream.IsSigned)} {stream.IsSigned}",
        $"{nameof(stream.IsServer)} {stream.IsServer}",
        $"{nameof(stream.CheckCertRevocationStatus)} {stream.CheckCertRevocationStatus}",
        $"{nameof(stream.LocalCertificate)} {stream.LocalCertificate?.Subject}",
        $"{nameof(stream.RemoteCertificate)} {stream.RemoteCertificate?.Subject}",
        $"{nameof(stream.CipherAlgorithm)} {stream.CipherAlgorithm}",
        $"{nameof(stream.CipherStrength)} {stream.CipherStrength}",
        $"{nameof(stream.HashAlgorithm)} {stream.HashAlgorithm}",
        $"{nameof(stream.HashStrength)} {stream.HashStrength}",
        $"{nameof(stream.KeyExchangeAlgorithm)} {stream.KeyExchangeAlgorithm}",
        $"{nameof(stream.KeyExchangeStrength)} {stream.KeyExchangeStrength}",
        $"{nameof(stream.CanRead)} {stream.CanRead}",
        $"{nameof(stream.CanWrite)} {stream.CanWrite}",
        $"{nameof(stream.CanTimeout)} {stream.CanTimeout}",
        $"{nameof(stream.ReadTimeout)} {stream.ReadTimeout}",
        $"{nameof(stream.WriteTimeout)} {stream.WriteTimeout}");
}

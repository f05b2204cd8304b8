using System.Net.Security;
using System.Security.Authentication;
using System.Security.Cryptography.X509Certificates;
using KernelTls.Tests;

namespace KernelTls.ConformanceTests;

/// <summary>
/// Tests a server whose options are chosen when the ClientHello has been received. The client is SslStream.
/// </summary>
public class ServerOptionsSelectionTests
{
    private const SslProtocols Both = SslProtocols.Tls12 | SslProtocols.Tls13;

    public static TheoryData<TlsMode> EveryMode => [.. Modes.Every];

    public static TheoryData<TlsMode, SslProtocols> All => Modes.All;

    public static TheoryData<TlsMode, string> Hosts => Modes.With(
        "localhost", "LocalHost", "localhost.", "bücher.test", "xn--bcher-kva.test", "a.very.long.name.with-hyphens.and.1.digit.test",
        "127.0.0.1", "::1", "");

    public static TheoryData<TlsMode, SslProtocols> Offers => Modes.With(SslProtocols.Tls12, SslProtocols.Tls13, Both, SslProtocols.None);

    public static TheoryData<TlsMode, SslProtocols, bool> AllSyncOrAsync => Modes.AllWith(false, true);

    [Theory]
    [MemberData(nameof(Hosts))]
    public async Task The_callback_is_told_the_name_that_the_client_asked_for(TlsMode mode, string host)
    {
        async Task<string[]> NamesAsync(TlsMode each)
        {
            string? announced = null;
            string? before = null;
            await using Meeting meeting = await new Meeting(TlsMode.Stock, each, Both)
            {
                ClientOptions = c => c.TargetHost = host,
                ClientValidation = (_, _, _, _) => true,
                ServerHandshake = s => s.HandshakeAsServerAsync(
                    (stream, hello, _, _) =>
                    {
                        announced = hello.ServerName;
                        before = stream.TargetHostName;
                        return ValueTask.FromResult(Handshakes.ServerOptions(Both));
                    },
                    null),
            }.SucceedAsync();
            Assert.NotNull(announced);
            return [announced, before!, meeting.Server.TargetHostName];
        }

        string[] actual = await SideBySide.RunAsync(mode, NamesAsync);
        string expected = host switch
        {
            "127.0.0.1" or "::1" or "" => "",
            "xn--bcher-kva.test" => "bücher.test",
            _ => host,
        };
        Assert.Equal(expected.TrimEnd('.'), actual[0].TrimEnd('.'), ignoreCase: true);
    }

    /// <summary>
    /// An intended difference: SslStream reports the versions in the headers of record and ClientHello, which do not
    /// describe TLS 1.3 (RFC 8446, section 4.1.2).
    /// </summary>
    [Theory]
    [MemberData(nameof(Offers))]
    public async Task The_callback_is_told_the_versions_that_the_client_offers(TlsMode mode, SslProtocols offered)
    {
        SslProtocols announced = default;
        await using Meeting meeting = await new Meeting(TlsMode.Stock, mode, offered)
        {
            ServerHandshake = s => s.HandshakeAsServerAsync(
                (_, hello, _, _) =>
                {
                    announced = hello.SslProtocols;
                    return ValueTask.FromResult(Handshakes.ServerOptions(SslProtocols.None));
                },
                null),
        }.SucceedAsync();

        if (!Modes.OnOpenSsl.Contains(mode))
        {
            Assert.True(announced.HasFlag(SslProtocols.Tls12), $"{announced}");
        }
        else if (offered == SslProtocols.None)
        {
            Assert.True(announced.HasFlag(SslProtocols.Tls12 | SslProtocols.Tls13), $"{announced}");
        }
        else
        {
            Assert.Equal(offered, announced);
        }
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task The_callback_is_called_once_with_the_stream_and_the_state(TlsMode mode, SslProtocols version)
    {
        object state = new();
        using CancellationTokenSource source = new();
        List<(SslStream Stream, object? State, CancellationToken Token)> calls = [];
        await using Meeting meeting = await new Meeting(TlsMode.Stock, mode, version)
        {
            ServerHandshake = s => s.HandshakeAsServerAsync(
                (stream, _, given, token) =>
                {
                    calls.Add((stream, given, token));
                    return ValueTask.FromResult(Handshakes.ServerOptions(version));
                },
                state,
                source.Token),
        }.SucceedAsync();

        Assert.Equal([(meeting.Server, state, source.Token)], calls);
        Assert.Equal(version, meeting.Server.SslProtocol);
        Assert.Equal("localhost", meeting.Server.TargetHostName);
        Assert.Equal(Certificates.Ecdsa.GetCertHashString(), meeting.Server.LocalCertificate!.GetCertHashString());
        Assert.True(meeting.Server.IsServer);
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task Inside_the_callback_the_stream_is_a_server_not_yet_authenticated(TlsMode mode, SslProtocols version)
    {
        async Task<string> LookAsync(TlsMode each)
        {
            string seen = "";
            await using Meeting meeting = await new Meeting(TlsMode.Stock, each, version)
            {
                ServerHandshake = s => s.HandshakeAsServerAsync(
                    (stream, _, _, _) =>
                    {
                        seen = string.Join(
                            ' ',
                            stream.IsServer,
                            stream.IsAuthenticated,
                            stream.IsEncrypted,
                            stream.IsMutuallyAuthenticated,
                            stream.CanRead,
                            stream.CanWrite,
                            Record.Exception(() => _ = stream.SslProtocol)?.GetType().Name,
                            Record.Exception(() => _ = stream.LocalCertificate)?.GetType().Name,
                            Record.Exception(() => _ = stream.RemoteCertificate)?.GetType().Name,
                            Record.Exception(() => stream.Write(new byte[1], 0, 1))?.GetType().Name);
                        return ValueTask.FromResult(Handshakes.ServerOptions(version));
                    },
                    null),
            }.SucceedAsync();
            return seen;
        }

        string actual = await SideBySide.RunAsync(mode, LookAsync);
        Assert.StartsWith("True False False", actual, StringComparison.Ordinal);
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task A_callback_may_take_its_time_without_holding_a_thread(TlsMode mode, SslProtocols version)
    {
        const int Count = 20;
        int waiting = 0;
        TaskCompletionSource everybody = new(TaskCreationOptions.RunContinuationsAsynchronously);
        async ValueTask<SslServerAuthenticationOptions> SelectAsync(
            SslStream stream, SslClientHelloInfo hello, object? state, CancellationToken cancellationToken)
        {
            await Task.Yield();
            if (Interlocked.Increment(ref waiting) == Count)
            {
                everybody.SetResult();
            }

            await everybody.Task.WaitAsync(cancellationToken);
            return Handshakes.ServerOptions(version);
        }

        Meeting[] meetings = [.. Enumerable.Range(0, Count).Select(_ => new Meeting(TlsMode.Stock, mode, version)
        {
            ServerHandshake = s => s.HandshakeAsServerAsync(SelectAsync, null),
        })];
        await Task.WhenAll(meetings.Select(m => m.SucceedAsync())).InTime("handshakes whose callbacks wait for each other");

        Assert.Equal(Count, waiting);
        foreach (Meeting meeting in meetings)
        {
            Assert.Equal(version, meeting.Server.SslProtocol);
            await meeting.DisposeAsync();
        }
    }

    [Theory]
    [MemberData(nameof(AllSyncOrAsync))]
    public async Task The_certificate_is_chosen_by_name(TlsMode mode, SslProtocols version, bool async)
    {
        foreach ((string host, X509Certificate2 expected) in new[]
        {
            ("localhost", Certificates.Ecdsa), ("elsewhere.test", Certificates.WrongName), ("127.0.0.1", Certificates.Rsa),
        })
        {
            await using Meeting meeting = await new Meeting(TlsMode.Stock, mode, version)
            {
                ClientOptions = c => c.TargetHost = host,
                ServerHandshake = s => s.HandshakeAsServerAsync(
                    async (_, hello, _, _) =>
                    {
                        if (async)
                        {
                            await Task.Yield();
                        }

                        SslServerAuthenticationOptions options = Handshakes.ServerOptions(version);
                        options.ServerCertificateContext = hello.ServerName switch
                        {
                            "localhost" => Certificates.EcdsaContext,
                            "elsewhere.test" => Certificates.Context(Certificates.WrongName),
                            _ => Certificates.RsaContext,
                        };
                        return options;
                    },
                    null),
            }.SucceedAsync();

            Assert.Equal(expected.GetCertHashString(), meeting.Client.RemoteCertificate!.GetCertHashString());
            Assert.Equal(expected.GetCertHashString(), meeting.Server.LocalCertificate!.GetCertHashString());
        }
    }

    [Theory]
    [MemberData(nameof(AllSyncOrAsync))]
    public async Task Application_protocols_and_versions_are_those_of_the_chosen_options(TlsMode mode, SslProtocols version, bool async)
    {
        await using Meeting meeting = await new Meeting(TlsMode.Stock, mode, Both)
        {
            ClientOptions = c => c.ApplicationProtocols = [SslApplicationProtocol.Http2, SslApplicationProtocol.Http11],
            ServerHandshake = s => s.HandshakeAsServerAsync(
                async (_, _, _, _) =>
                {
                    if (async)
                    {
                        await Task.Yield();
                    }

                    SslServerAuthenticationOptions options = Handshakes.ServerOptions(version);
                    options.ApplicationProtocols = [new SslApplicationProtocol("own"), SslApplicationProtocol.Http11];
                    return options;
                },
                null),
        }.SucceedAsync();

        Assert.Equal(version, meeting.Server.SslProtocol);
        Assert.Equal(version, meeting.Client.SslProtocol);
        Assert.Equal(SslApplicationProtocol.Http11, meeting.Server.NegotiatedApplicationProtocol);
        Assert.Equal(SslApplicationProtocol.Http11, meeting.Client.NegotiatedApplicationProtocol);
    }

    [Theory]
    [MemberData(nameof(AllSyncOrAsync))]
    public async Task The_chosen_options_may_require_a_client_certificate(TlsMode mode, SslProtocols version, bool async)
    {
        (object? Sender, string? Certificate, SslPolicyErrors Errors) seen = default;
        await using Meeting meeting = await new Meeting(TlsMode.Stock, mode, version)
        {
            ClientOptions = c => c.ClientCertificateContext = Certificates.ClientContext,
            ServerHandshake = s => s.HandshakeAsServerAsync(
                async (_, _, _, _) =>
                {
                    if (async)
                    {
                        await Task.Yield();
                    }

                    SslServerAuthenticationOptions options = Handshakes.ServerOptions(version);
                    options.ClientCertificateRequired = true;
                    options.RemoteCertificateValidationCallback = (sender, certificate, _, errors) =>
                    {
                        seen = (sender, certificate?.GetCertHashString(), errors);
                        return true;
                    };
                    return options;
                },
                null),
        }.SucceedAsync();

        Assert.Equal((meeting.Server, Certificates.Client.GetCertHashString(), SslPolicyErrors.None), seen);
        Assert.True(meeting.Server.IsMutuallyAuthenticated);
        Assert.True(meeting.Client.IsMutuallyAuthenticated);
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task The_chosen_options_may_leave_the_certificate_to_a_callback(TlsMode mode, SslProtocols version)
    {
        List<(object Sender, string? Name)> calls = [];
        await using Meeting meeting = await new Meeting(TlsMode.Stock, mode, version)
        {
            ServerHandshake = s => s.HandshakeAsServerAsync(
                async (_, _, _, _) =>
                {
                    await Task.Yield();
                    SslServerAuthenticationOptions options = Handshakes.ServerOptions(version);
                    options.ServerCertificateContext = null;
                    options.ServerCertificateSelectionCallback = (sender, name) =>
                    {
                        calls.Add((sender, name));
                        return Certificates.Rsa;
                    };
                    return options;
                },
                null),
        }.SucceedAsync();

        Assert.Equal([(meeting.Server, "localhost")], calls);
        Assert.Equal(Certificates.Rsa.GetCertHashString(), meeting.Client.RemoteCertificate!.GetCertHashString());
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task A_large_ClientHello_is_understood(TlsMode mode, SslProtocols version)
    {
        List<SslApplicationProtocol> many = [.. Enumerable.Range(0, 60).Select(i => new SslApplicationProtocol($"{i:D4}-{new string('x', 95)}"))];
        string? name = null;
        await using Meeting meeting = await new Meeting(TlsMode.Stock, mode, version)
        {
            ClientOptions = c => c.ApplicationProtocols = many,
            ServerHandshake = s => s.HandshakeAsServerAsync(
                async (_, hello, _, _) =>
                {
                    name = hello.ServerName;
                    await Task.Yield();
                    SslServerAuthenticationOptions options = Handshakes.ServerOptions(version);
                    options.ApplicationProtocols = [many[^1]];
                    return options;
                },
                null),
        }.SucceedAsync();

        Assert.Equal("localhost", name);
        Assert.Equal(many[^1], meeting.Server.NegotiatedApplicationProtocol);
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task A_ClientHello_that_arrives_byte_by_byte_is_understood(TlsMode mode, SslProtocols version)
    {
        using SlowRelay relay = await SlowRelay.ConnectAsync(single: 150);
        int calls = 0;
        await using Meeting meeting = await new Meeting(TlsMode.Stock, mode, version)
        {
            Sockets = relay.Ends,
            ServerHandshake = s => s.HandshakeAsServerAsync(
                async (_, hello, _, _) =>
                {
                    calls++;
                    Assert.Equal("localhost", hello.ServerName);
                    await Task.Yield();
                    return Handshakes.ServerOptions(version);
                },
                null),
        }.SucceedAsync();

        Assert.Equal(1, calls);
        Assert.Equal(150, relay.Single);
    }
}

using System.Diagnostics.Tracing;
using System.Net.Security;
using System.Net.Sockets;
using System.Security.Authentication;
using System.Security.Cryptography.X509Certificates;
using KernelTls.Tests;

namespace KernelTls.ConformanceTests;

/// <summary>
/// Tests when a session is resumed and when not. SslStream does not expose that, so KtlsStream itself is queried, with
/// both ends in the same mode.
/// </summary>
public class ResumedSessionTests
{
    private static readonly bool[] s_either = [false, true];

    private static readonly FlowEvents s_chains = new(
        "ChainStart", _ => "chain", "System.Security.Cryptography.X509Certificates.X509Chain.OpenSsl", EventLevel.LogAlways);

    private static int s_hosts;

    public static TheoryData<TlsMode, SslProtocols> All => Modes.AllOnOpenSsl;

    public static TheoryData<TlsMode, SslProtocols, string> Obstacles => Modes.AllOnOpenSslWith(
        "client forbids", "server forbids", "other host", "other certificate", "other versions", "other protocols",
        "policy of suites", "address", "new server context", "client certificate required");

    public static TheoryData<TlsMode, SslProtocols, string?> Clients => Modes.AllOnOpenSslWith<string?>("chained client", "second client", null);

    public static TheoryData<TlsMode, SslProtocols, bool, bool> CutOff =>
        [.. from row in Modes.AllOnOpenSslWith(s_either)
            from hasCertificate in s_either
            select new TheoryDataRow<TlsMode, SslProtocols, bool, bool>(row.Data.Item1, row.Data.Item2, row.Data.Item3, hasCertificate)];

    [Theory]
    [MemberData(nameof(All))]
    public async Task The_second_connection_resumes_and_judges_the_certificate_again(TlsMode mode, SslProtocols version)
    {
        Setup setup = new(mode, version);
        for (int i = 0; i < 4; i++)
        {
            Connection connection = await setup.ConnectAsync();

            Assert.Equal(i > 0, connection.Resumed);
            Assert.Equal(i + 1, setup.Judged);
            Assert.Equal(Certificates.Ecdsa.GetCertHashString(), connection.RemoteHash);
            Assert.Equal(setup.FirstChain, setup.LastChain);
        }
    }

    /// <summary>
    /// Only time can have changed, and no application code is involved (docs/security.md). .NET's own events show
    /// whether the chain was built.
    /// </summary>
    [Theory]
    [MemberData(nameof(All))]
    public async Task Without_a_callback_the_chain_of_a_session_is_built_once(TlsMode mode, SslProtocols version)
    {
        Setup setup = new(mode, version, judges: false);
        List<string> chains = s_chains.Collect();
        for (int i = 0; i < 4; i++)
        {
            Connection connection = await setup.ConnectAsync();

            Assert.Equal(i > 0, connection.Resumed);
            Assert.Equal(Certificates.Kind("wildcard").GetCertHashString(), connection.RemoteHash);
            Assert.True(chains.Count > 0 == (i == 0), $"Connection {i} built {chains.Count} chains");
            chains.Clear();
        }
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task Trust_that_was_taken_away_is_noticed(TlsMode mode, SslProtocols version)
    {
        Setup setup = new(mode, version, judges: false);
        await setup.ConnectAsync();
        Assert.True((await setup.ConnectAsync()).Resumed);

        await Assert.ThrowsAsync<AuthenticationException>(
            () => setup.ConnectAsync(c => c.CertificateChainPolicy!.CustomTrustStore.Clear()));
    }

    [Theory]
    [MemberData(nameof(Obstacles))]
    public async Task Nothing_is_resumed_across_what_must_stay_apart(TlsMode mode, SslProtocols version, string obstacle)
    {
        Setup setup = new(mode, version);
        Action<SslClientAuthenticationOptions>? client = null;
        Action<SslServerAuthenticationOptions>? server = null;
        bool always = true;
        switch (obstacle)
        {
            case "client forbids": client = c => c.AllowTlsResume = false; break;
            case "server forbids": server = s => s.AllowTlsResume = false; break;
            case "other host": always = false; client = c => c.TargetHost = "other." + c.TargetHost; break;
            case "other certificate": always = false; client = c => c.ClientCertificateContext = Certificates.ClientContext; break;
            case "other versions": always = false; client = c => c.EnabledSslProtocols = SslProtocols.Tls12 | SslProtocols.Tls13; break;
            case "other protocols": always = false; client = c => c.ApplicationProtocols = [SslApplicationProtocol.Http11]; break;
#pragma warning disable CA1416 // Linux
            case "policy of suites":
                client = c => c.CipherSuitesPolicy = new CipherSuitesPolicy(
                    [TlsCipherSuite.TLS_AES_256_GCM_SHA384, TlsCipherSuite.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384]);
                break;
#pragma warning restore CA1416
            case "address": client = c => c.TargetHost = "127.0.0.1"; break;
            case "new server context":
                always = false;
                SslStreamCertificateContext fresh = SslStreamCertificateContext.Create(Certificates.Ecdsa, null, offline: true);
                server = s => s.ServerCertificateContext = fresh;
                break;
            case "client certificate required":
                always = false;
                client = c => c.ClientCertificateContext = Certificates.ClientContext;
                server = s => s.ClientCertificateRequired = true;
                break;
            default: Assert.Fail(obstacle); break;
        }

        // Options that forbid resumption do so each time. Options that separate two kinds let each kind resume its own
        // sessions.
        Assert.False((await setup.ConnectAsync()).Resumed);
        Assert.False((await setup.ConnectAsync(client, server)).Resumed);
        Assert.Equal(!always, (await setup.ConnectAsync(client, server)).Resumed);
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task A_resumed_connection_is_refused_where_the_certificate_is_no_longer_good(TlsMode mode, SslProtocols version)
    {
        Setup setup = new(mode, version);
        await setup.ConnectAsync();
        setup.Accept = false;

        await Assert.ThrowsAsync<AuthenticationException>(() => setup.ConnectAsync());

        Assert.Equal(2, setup.Judged);
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task A_server_that_chooses_by_name_resumes(TlsMode mode, SslProtocols version)
    {
        Setup setup = new(mode, version);
        void Choosing(SslServerAuthenticationOptions s)
        {
            s.ServerCertificateContext = null;
            s.ServerCertificateSelectionCallback = (_, _) => Certificates.Ecdsa;
        }

        Assert.False((await setup.ConnectAsync(server: Choosing)).Resumed);
        Assert.True((await setup.ConnectAsync(server: Choosing)).Resumed);
    }

    /// <summary>Tests a server that sends no close_notify, like the stock one.</summary>
    /// <remarks>
    /// The end may have truncated data, but invalidates no session (RFC 5246, section 7.2.1), whether the client reads
    /// up to it or closes first. A client with a certificate may be asked for it later, and OpenSSL then processes what
    /// follows the client's close_notify.
    /// </remarks>
    [Theory]
    [MemberData(nameof(CutOff))]
    public async Task Connections_that_were_cut_off_are_resumed(TlsMode mode, SslProtocols version, bool reads, bool hasCertificate)
    {
        string host = $"host{Interlocked.Increment(ref s_hosts)}.test";
        for (int i = 0; i < 5; i++)
        {
            await using TlsPair pair = await TlsPair.ConnectAsync(mode, TlsMode.Stock, version, c =>
            {
                c.TargetHost = host;
                c.AllowTlsResume = true;
                c.RemoteCertificateValidationCallback = (_, _, _, _) => true;
                c.ClientCertificateContext = hasCertificate ? Certificates.ClientContext : null;
            });
            Assert.True(((KtlsStream)pair.Client).IsResumed == (i > 0), $"Connection {i}");
            await pair.Server.WriteAsync(new byte[] { 42 }).InTime("data behind the tickets");
            Assert.Equal(1, await pair.Client.ReadAsync(new byte[1]).InTime("the tickets and the data"));

            pair.ServerSocket.Shutdown(SocketShutdown.Send);
            Assert.True(pair.ClientSocket.Poll(Limits.Wait, SelectMode.SelectRead), "Waited for the end");
            if (reads)
            {
                Assert.Equal(0, await pair.Client.ReadAsync(new byte[1]).InTime("the end"));
            }
        }
    }

    /// <summary>Servers that choose their options encrypt tickets with the same keys, whatever they choose.</summary>
    [Theory]
    [MemberData(nameof(All))]
    public async Task A_server_that_chooses_differently_does_not_resume(TlsMode mode, SslProtocols version)
    {
        Setup setup = new(mode, version);
        X509Certificate2 chosen = Certificates.Ecdsa;
        void Choosing(SslServerAuthenticationOptions s)
        {
            s.ServerCertificateContext = null;
            s.ServerCertificateSelectionCallback = (_, _) => chosen;
        }

        Assert.False((await setup.ConnectAsync(server: Choosing)).Resumed);
        chosen = Certificates.Rsa;
        Connection second = await setup.ConnectAsync(server: Choosing);

        Assert.False(second.Resumed);
        Assert.Equal(Certificates.Rsa.GetCertHashString(), second.RemoteHash);
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task A_client_that_showed_its_certificate_goes_on_showing_it(TlsMode mode, SslProtocols version)
    {
        Setup setup = new(mode, version);
        void WithCertificate(SslClientAuthenticationOptions c) => c.ClientCertificateContext = Certificates.ClientContext;

        foreach (bool resumed in new[] { false, true })
        {
            Connection connection = await setup.ConnectAsync(WithCertificate);
            Assert.Equal(resumed, connection.Resumed);
            Assert.False(connection.ShowedCertificate, "nobody asked for it");
        }
    }

    /// <summary>The server has no other way to the issuer than the chain that the client sent on the first connection.</summary>
    [Theory]
    [MemberData(nameof(Clients))]
    public async Task A_server_validates_the_whole_chain_of_a_client_that_resumes(TlsMode mode, SslProtocols version, string? kind)
    {
        Setup setup = new(mode, version);
        Calls calls = new();
        for (int i = 0; i < 3; i++)
        {
            Connection connection = await setup.ConnectAsync(
                c => c.ClientCertificateContext = kind is null ? null : Certificates.KindContext(kind),
                s => AcceptChains(s, calls));

            Assert.Equal(i > 0, connection.Resumed);
            Assert.Equal(kind is not null, connection.ShowedCertificate);
        }

        string expected = kind switch
        {
            null => "null | 0 | RemoteCertificateNotAvailable",
            "chained client" => "CN=a chained client | 3 | None",
            _ => $"{Certificates.Kind(kind).Subject} | 2 | None",
        };
        Assert.Equal(Enumerable.Repeat(expected, 3), calls.List);
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task A_chained_client_resumes_without_a_callback(TlsMode mode, SslProtocols version)
    {
        Setup setup = new(mode, version);
        foreach (bool resumed in new[] { false, true, true })
        {
            Connection connection = await setup.ConnectAsync(
                c => c.ClientCertificateContext = Certificates.KindContext("chained client"),
                s =>
                {
                    s.ClientCertificateRequired = true;
                    s.RemoteCertificateValidationCallback = null;
                });
            Assert.Equal(resumed, connection.Resumed);
        }
    }

    /// <summary>A client that was accepted is refused when its authority is not trusted any more.</summary>
    [Theory]
    [MemberData(nameof(All))]
    public async Task A_client_that_resumes_is_refused_where_it_would_be_refused_anew(TlsMode mode, SslProtocols version)
    {
        Setup setup = new(mode, version);
        bool trusts = true;
        void Require(SslServerAuthenticationOptions s)
        {
            s.ClientCertificateRequired = true;
            s.RemoteCertificateValidationCallback = null;
            s.CertificateChainPolicy = new X509ChainPolicy { RevocationMode = X509RevocationMode.NoCheck, TrustMode = X509ChainTrustMode.CustomRootTrust };
            if (trusts)
            {
                s.CertificateChainPolicy.CustomTrustStore.Add(Certificates.Authority);
            }
        }

        void WithCertificate(SslClientAuthenticationOptions c) => c.ClientCertificateContext = Certificates.KindContext("chained client");
        Assert.False((await setup.ConnectAsync(WithCertificate, Require)).Resumed);
        Assert.True((await setup.ConnectAsync(WithCertificate, Require)).Resumed);
        trusts = false;

        Meeting refused = await setup.RunAsync(WithCertificate, Require);
        await using (refused)
        {
            Assert.IsType<AuthenticationException>(refused.ServerEnding.Handshake);
        }
    }

    /// <summary>A ticket has 8 KiB for issuers. Clients with more shake hands in full each time.</summary>
    [Theory]
    [MemberData(nameof(All))]
    public async Task A_chain_of_60_kB_is_validated_each_time(TlsMode mode, SslProtocols version)
    {
        Setup setup = new(mode, version);
        Calls calls = new();
        SslStreamCertificateContext context = SslStreamCertificateContext.Create(
            Certificates.Kind("client of a large authority"), [Certificates.Large], offline: true);
        for (int i = 0; i < 3; i++)
        {
            Assert.False((await setup.ConnectAsync(c => c.ClientCertificateContext = context, s => AcceptChains(s, calls))).Resumed);
        }

        Assert.Equal(Enumerable.Repeat("CN=a client of a large authority | 3 | None", 3), calls.List);
    }

    private static void AcceptChains(SslServerAuthenticationOptions options, Calls calls)
    {
        options.ClientCertificateRequired = true;
        options.RemoteCertificateValidationCallback = (_, certificate, chain, errors) =>
        {
            calls.Add(certificate, chain?.ChainElements.Count ?? 0, errors);
            return true;
        };
    }

    /// <summary>
    /// Uses a separate host, so that nothing is shared with other tests, and one server for all connections.
    /// </summary>
    private sealed class Setup(TlsMode mode, SslProtocols version, bool judges = true)
    {
        private readonly string _host = $"host{Interlocked.Increment(ref s_hosts)}.{(judges ? "test" : "wild.test")}";

        public int Judged { get; private set; }

        public bool Accept { get; set; } = true;

        public string? FirstChain { get; private set; }

        public string? LastChain { get; private set; }

        public async Task<Connection> ConnectAsync(
            Action<SslClientAuthenticationOptions>? client = null, Action<SslServerAuthenticationOptions>? server = null)
        {
            await using Meeting meeting = await RunAsync(client, server);
            if (meeting.ClientEnding.Handshake is { } failure)
            {
                throw failure;
            }

            meeting.ClientEnding.AssertGood();
            meeting.ServerEnding.AssertGood();
            KtlsStream stream = (KtlsStream)meeting.Client;
            Assert.Equal(stream.IsResumed, ((KtlsStream)meeting.Server).IsResumed);
            return new Connection(stream.IsResumed, stream.LocalCertificate is not null, stream.RemoteCertificate!.GetCertHashString());
        }

        public async Task<Meeting> RunAsync(Action<SslClientAuthenticationOptions>? client, Action<SslServerAuthenticationOptions>? server)
        {
            Meeting meeting = new(mode, mode, version)
            {
                ClientOptions = c =>
                {
                    c.TargetHost = _host;
                    c.AllowTlsResume = true;
                    client?.Invoke(c);
                },
                ServerOptions = s =>
                {
                    // TLS 1.2 follows from the client's versions; the server accepts any.
                    s.EnabledSslProtocols = SslProtocols.None;
                    s.ApplicationProtocols = [SslApplicationProtocol.Http11];
                    s.RemoteCertificateValidationCallback = (_, _, _, _) => true;
                    s.ServerCertificateContext = judges ? s.ServerCertificateContext : Certificates.KindContext("wildcard");
                    server?.Invoke(s);
                },
                ClientValidation = judges ? Judge : null,
            };
            return await meeting.RunAsync();
        }

        private bool Judge(object sender, X509Certificate? certificate, X509Chain? chain, SslPolicyErrors errors)
        {
            Judged++;
            LastChain = string.Join(", ", chain!.ChainElements.Select(e => e.Certificate.Subject));
            FirstChain ??= LastChain;
            return Accept;
        }
    }

    private sealed record Connection(bool Resumed, bool ShowedCertificate, string RemoteHash);
}

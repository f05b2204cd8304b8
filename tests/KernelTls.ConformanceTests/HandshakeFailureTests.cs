using System.Net.Security;
using System.Net.Sockets;
using System.Security.Authentication;
using System.Security.Cryptography.X509Certificates;
using KernelTls.Tests;

namespace KernelTls.ConformanceTests;

/// <summary>
/// Compares failures: what fails on SslStream fails on KtlsStream with the same type of exception, and on the other end
/// too.
/// </summary>
public class HandshakeFailureTests
{
    private sealed record Outcome(Exception? Client, Exception? Server);

    private static readonly Dictionary<string, (bool IsServer, Action<SslClientAuthenticationOptions, SslServerAuthenticationOptions> Spoil)> s_failures = new()
    {
        ["wrong host"] = (false, (c, _) => c.TargetHost = "other.test"),
        ["refused by the callback"] = (false, (c, _) => c.RemoteCertificateValidationCallback = (_, _, _, _) => false),
        ["untrusted client"] = (true, Untrusted),
        ["no client certificate"] = (true, (_, s) => s.ClientCertificateRequired = true),
        ["server without a version in common"] = (true, NoVersion),
        ["client without a version in common"] = (false, NoVersion),
    };

    public static TheoryData<TlsMode, SslProtocols> OnOpenSsl => Modes.AllOnOpenSsl;

    public static TheoryData<TlsMode, SslProtocols, string> Failures => Modes.AllWith<string>(s_failures.Keys);

    [Theory]
    [MemberData(nameof(OnOpenSsl))]
    public async Task A_server_without_a_certificate(TlsMode mode, SslProtocols version) =>
        await AssertSameAsync<NotSupportedException>(mode, version, server: s => s.ServerCertificateContext = null, serverFails: true);

    [Theory]
    [MemberData(nameof(OnOpenSsl))]
    public async Task A_wrong_host_name(TlsMode mode, SslProtocols version) =>
        await AssertSameAsync<AuthenticationException>(mode, version, client: c => c.TargetHost = "other.test");

    [Theory]
    [MemberData(nameof(OnOpenSsl))]
    public async Task No_host_name(TlsMode mode, SslProtocols version) =>
        await AssertSameAsync<AuthenticationException>(mode, version, client: c => c.TargetHost = "");

    [Theory]
    [MemberData(nameof(OnOpenSsl))]
    public async Task A_certificate_for_another_name(TlsMode mode, SslProtocols version) =>
        await AssertSameAsync<AuthenticationException>(
            mode, version, server: s => s.ServerCertificateContext = Certificates.Context(Certificates.WrongName));

    [Theory]
    [MemberData(nameof(OnOpenSsl))]
    public async Task An_expired_certificate(TlsMode mode, SslProtocols version) =>
        await AssertSameAsync<AuthenticationException>(
            mode, version, server: s => s.ServerCertificateContext = Certificates.Context(Certificates.Expired));

    [Theory]
    [MemberData(nameof(OnOpenSsl))]
    public async Task A_self_signed_certificate(TlsMode mode, SslProtocols version) =>
        await AssertSameAsync<AuthenticationException>(
            mode,
            version,
            client: c => c.CertificateChainPolicy = null,
            server: s => s.ServerCertificateContext = Certificates.Context(Certificates.SelfSigned));

    [Theory]
    [MemberData(nameof(OnOpenSsl))]
    public async Task A_callback_that_rejects(TlsMode mode, SslProtocols version) =>
        await AssertSameAsync<AuthenticationException>(
            mode, version, client: c => c.RemoteCertificateValidationCallback = (_, _, _, _) => false);

    [Theory]
    [MemberData(nameof(OnOpenSsl))]
    public async Task A_callback_that_throws(TlsMode mode, SslProtocols version) =>
        await AssertSameAsync<InsufficientMemoryException>(
            mode,
            version,
            client: c => c.RemoteCertificateValidationCallback = (_, _, _, _) => throw new InsufficientMemoryException("thrown"));

    [Theory]
    [MemberData(nameof(OnOpenSsl))]
    public async Task A_server_s_callback_that_rejects_the_client(TlsMode mode, SslProtocols version) =>
        await AssertSameAsync<AuthenticationException>(
            mode,
            version,
            client: c => c.ClientCertificateContext = Certificates.ClientContext,
            server: s =>
            {
                s.ClientCertificateRequired = true;
                s.RemoteCertificateValidationCallback = (_, _, _, _) => false;
            },
            serverFails: true);

    [Theory]
    [MemberData(nameof(OnOpenSsl))]
    public async Task A_client_certificate_that_nobody_trusts(TlsMode mode, SslProtocols version) =>
        await AssertSameAsync<AuthenticationException>(
            mode,
            version,
            client: c => c.ClientCertificateContext = Certificates.Context(Certificates.SelfSigned),
            server: s => s.ClientCertificateRequired = true,
            serverFails: true);

    [Theory]
    [MemberData(nameof(OnOpenSsl))]
    public async Task A_client_certificate_that_is_missing(TlsMode mode, SslProtocols version) =>
        await AssertSameAsync<AuthenticationException>(
            mode, version, server: s => s.ClientCertificateRequired = true, serverFails: true);

    [Theory]
    [MemberData(nameof(OnOpenSsl))]
    public async Task No_application_protocol_in_common(TlsMode mode, SslProtocols version) =>
        await AssertSameAsync<AuthenticationException>(
            mode,
            version,
            client: c => c.ApplicationProtocols = [SslApplicationProtocol.Http2],
            server: s => s.ApplicationProtocols = [SslApplicationProtocol.Http11],
            serverFails: true,
            bothFail: true);

    [Theory]
    [MemberData(nameof(OnOpenSsl))]
    public async Task No_version_in_common(TlsMode mode, SslProtocols version) =>
        await AssertSameAsync<AuthenticationException>(
            mode,
            version,
            server: s => s.EnabledSslProtocols = version == SslProtocols.Tls12 ? SslProtocols.Tls13 : SslProtocols.Tls12,
            serverFails: true,
            bothFail: true);

#pragma warning disable CA1416 // Linux
    [Theory]
    [MemberData(nameof(OnOpenSsl))]
    public async Task No_cipher_suite_in_common(TlsMode mode, SslProtocols version) =>
        await AssertSameAsync<AuthenticationException>(
            mode,
            version,
            client: c => c.CipherSuitesPolicy = new([TlsCipherSuite.TLS_AES_128_GCM_SHA256, TlsCipherSuite.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256]),
            server: s => s.CipherSuitesPolicy = new([TlsCipherSuite.TLS_AES_256_GCM_SHA384, TlsCipherSuite.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384]),
            serverFails: true,
            bothFail: true);
#pragma warning restore CA1416

    [Theory]
    [MemberData(nameof(OnOpenSsl))]
    public async Task A_cancelled_handshake(TlsMode mode, SslProtocols version)
    {
        foreach (TlsMode each in new[] { TlsMode.Stock, mode })
        {
            foreach (bool isServer in new[] { false, true })
            {
                await using TlsPair pair = await TlsPair.CreateAsync(each, each);
                using CancellationTokenSource source = new();
                Task shaking = isServer
                    ? pair.Server.HandshakeAsServerAsync(Handshakes.ServerOptions(version), source.Token)
                    : pair.Client.HandshakeAsClientAsync(Handshakes.ClientOptions(version), source.Token);
                await shaking.StaysPending();

                await source.CancelAsync();

                await Assert.ThrowsAnyAsync<OperationCanceledException>(() => shaking.InTime());
                await Assert.ThrowsAnyAsync<Exception>(() => pair.Client.WriteAsync(new byte[1]).InTime());
            }
        }
    }

    [Theory]
    [MemberData(nameof(OnOpenSsl))]
    public async Task A_handshake_cancelled_before_it_began(TlsMode mode, SslProtocols version)
    {
        foreach (TlsMode each in new[] { TlsMode.Stock, mode })
        {
            await using TlsPair pair = await TlsPair.CreateAsync(each, each);

            await Assert.ThrowsAnyAsync<OperationCanceledException>(
                () => pair.Client.HandshakeAsClientAsync(Handshakes.ClientOptions(version), new CancellationToken(true)).InTime());
        }
    }

    [Theory]
    [MemberData(nameof(OnOpenSsl))]
    public async Task A_blocking_handshake_that_times_out(TlsMode mode, SslProtocols version)
    {
        foreach (TlsMode each in new[] { TlsMode.Stock, mode })
        {
            foreach (bool isServer in new[] { false, true })
            {
                await using TlsPair pair = await TlsPair.CreateAsync(each, each);
                SslStream stream = isServer ? pair.Server : pair.Client;
                stream.ReadTimeout = 50;

                IOException e = await Assert.ThrowsAsync<IOException>(() => Limits.Blocking(() =>
                {
                    if (isServer)
                    {
                        stream.ShakeServer(Handshakes.ServerOptions(version));
                    }
                    else
                    {
                        stream.ShakeClient(Handshakes.ClientOptions(version));
                    }
                }).InTime());

                Assert.Equal(SocketError.TimedOut, Assert.IsType<SocketException>(e.InnerException).SocketErrorCode);
            }
        }
    }

    [Theory]
    [MemberData(nameof(Failures))]
    public async Task A_failed_handshake_fails_everything_after_it_as_on_SslStream(TlsMode mode, SslProtocols version, string what)
    {
        (bool isServer, Action<SslClientAuthenticationOptions, SslServerAuthenticationOptions> spoil) = s_failures[what];
        async Task<string> UseAsync(TlsMode each)
        {
            await using TlsPair pair = await TlsPair.CreateAsync(isServer ? TlsMode.Stock : each, isServer ? each : TlsMode.Stock);
            SslClientAuthenticationOptions client = Handshakes.ClientOptions(version);
            SslServerAuthenticationOptions server = Handshakes.ServerOptions(version);
            spoil(client, server);
            SslStream failing = isServer ? pair.Server : pair.Client;
            Task ShakeAsync() => isServer ? failing.HandshakeAsServerAsync(server) : failing.HandshakeAsClientAsync(client);
            Task other = isServer ? pair.Client.HandshakeAsClientAsync(client) : pair.Server.HandshakeAsServerAsync(server);
            await Assert.ThrowsAsync<AuthenticationException>(() => ShakeAsync().InTime());

            string[] uses =
            [
                Shape(await Record.ExceptionAsync(() => failing.WriteAsync(new byte[1]).InTime())),
                Shape(await Record.ExceptionAsync(() => failing.ReadAsync(new byte[1]).InTime())),
                Shape(await Record.ExceptionAsync(() => Limits.Blocking(() => failing.Write(new byte[1])).InTime())),
                Shape(await Record.ExceptionAsync(() => Limits.Blocking(() => failing.ReadByte()).InTime())),
            ];
            Assert.False(failing.IsAuthenticated);
            (isServer ? pair.ServerSocket : pair.ClientSocket).Dispose();
            await Record.ExceptionAsync(() => other.InTime("the other end's handshake"));
            await Assert.ThrowsAnyAsync<Exception>(() => ShakeAsync().InTime("a second handshake"));
            return string.Join(", ", uses);
        }

        string actual = await SideBySide.RunAsync(mode, UseAsync);
        Assert.DoesNotContain("good", actual, StringComparison.Ordinal);
    }

    /// <summary>
    /// The peer is refused during the handshake, so it receives an alert. (SslStream validates after it and just
    /// closes.)
    /// </summary>
    [Theory]
    [MemberData(nameof(OnOpenSsl))]
    public async Task The_refused_peer_is_told_why(TlsMode mode, SslProtocols version)
    {
        foreach ((X509Certificate2 certificate, string alert) in new[]
        {
            (Certificates.Expired, "alert certificate expired"),
            (Certificates.SelfSigned, "alert unknown ca"),
            (Certificates.WrongName, "alert bad certificate"),
        })
        {
            await using TlsPair pair = await TlsPair.CreateAsync(mode, TlsMode.Stock);
            SslServerAuthenticationOptions options = Handshakes.ServerOptions(version);
            options.ServerCertificateContext = Certificates.Context(certificate);
            Task<Exception?> server = FailureOf(async () =>
            {
                await pair.Server.HandshakeAsServerAsync(options);
                await pair.Server.ReadExactlyAsync(new byte[1]);
            });
            await Assert.ThrowsAsync<AuthenticationException>(
                () => pair.Client.HandshakeAsClientAsync(Handshakes.ClientOptions(version)).InTime());

            Assert.Contains(alert, $"{Innermost(await server.InTime())?.Message}", StringComparison.Ordinal);
        }
    }

    private static string Shape(Exception? e) => $"{new Ending(e, null)}";

    private static void Untrusted(SslClientAuthenticationOptions client, SslServerAuthenticationOptions server)
    {
        client.ClientCertificateContext = Certificates.Context(Certificates.SelfSigned);
        server.ClientCertificateRequired = true;
    }

    private static void NoVersion(SslClientAuthenticationOptions client, SslServerAuthenticationOptions server) =>
        server.EnabledSslProtocols = client.EnabledSslProtocols == SslProtocols.Tls12 ? SslProtocols.Tls13 : SslProtocols.Tls12;

    private static async Task AssertSameAsync<TException>(
        TlsMode mode,
        SslProtocols version,
        Action<SslClientAuthenticationOptions>? client = null,
        Action<SslServerAuthenticationOptions>? server = null,
        bool serverFails = false,
        bool bothFail = false)
        where TException : Exception
    {
        Outcome expected = await TryAsync(TlsMode.Stock, version, client, server);
        Outcome actual = await TryAsync(mode, version, client, server);

        Exception cause = (serverFails ? expected.Server : expected.Client)!;
        Assert.IsType<TException>(cause is AuthenticationException { InnerException: TException inner } ? inner : cause);
        Assert.Equal(Shape(cause), Shape(serverFails ? actual.Server : actual.Client));
        if (bothFail)
        {
            HandshakePeerTests.AssertSame(expected.Client!, actual.Client!);
            HandshakePeerTests.AssertSame(expected.Server!, actual.Server!);
        }
    }

    /// <summary>
    /// Runs both ends in one mode. An end that fails closes its socket; an end that succeeds reads a byte.
    /// </summary>
    private static async Task<Outcome> TryAsync(
        TlsMode mode,
        SslProtocols version,
        Action<SslClientAuthenticationOptions>? client,
        Action<SslServerAuthenticationOptions>? server)
    {
        await using TlsPair pair = await TlsPair.CreateAsync(mode, mode);
        SslClientAuthenticationOptions clientOptions = Handshakes.ClientOptions(version);
        SslServerAuthenticationOptions serverOptions = Handshakes.ServerOptions(version);
        client?.Invoke(clientOptions);
        server?.Invoke(serverOptions);

        Task<Exception?> first = FailAsync(pair.Client, pair.ClientSocket, () => pair.Client.HandshakeAsClientAsync(clientOptions));
        Task<Exception?> second = FailAsync(pair.Server, pair.ServerSocket, () => pair.Server.HandshakeAsServerAsync(serverOptions));
        return new Outcome(await first.InTime("the client's failure"), await second.InTime("the server's failure"));

        static async Task<Exception?> FailAsync(SslStream stream, Socket socket, Func<Task> handshake)
        {
            try
            {
                await handshake();
                await stream.ReadExactlyAsync(new byte[1]);
                return null;
            }
            catch (Exception e)
            {
                socket.Shutdown(SocketShutdown.Send);
                return e;
            }
        }
    }

    private static async Task<Exception?> FailureOf(Func<Task> work) => await Record.ExceptionAsync(work);

    private static Exception? Innermost(Exception? e)
    {
        while (e?.InnerException is { } inner)
        {
            e = inner;
        }

        return e;
    }
}

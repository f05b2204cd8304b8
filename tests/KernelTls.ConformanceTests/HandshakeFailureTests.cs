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

    /// <summary>What fails: the exception, the ends that find the fault, and what makes it.</summary>
    private sealed record Failure(Type Type, Ends Ends, Action<SslClientAuthenticationOptions, SslServerAuthenticationOptions> Spoil);

    [Flags]
    private enum Ends
    {
        Client = 1,
        Server = 2,
        Both = Client | Server,
    }

#pragma warning disable CA1416 // Linux
    private static readonly Dictionary<string, Failure> s_failures = new()
    {
        ["a server without a certificate"] = new(typeof(NotSupportedException), Ends.Server, (_, s) => s.ServerCertificateContext = null),
        ["a wrong host name"] = Refusal(Ends.Client, (c, _) => c.TargetHost = "other.test"),
        ["no host name"] = Refusal(Ends.Client, (c, _) => c.TargetHost = ""),
        ["a certificate for another name"] = Refusal(Ends.Client, (_, s) => s.ServerCertificateContext = Certificates.Context(Certificates.WrongName)),
        ["an expired certificate"] = Refusal(Ends.Client, (_, s) => s.ServerCertificateContext = Certificates.Context(Certificates.Expired)),
        ["a self-signed certificate"] = Refusal(Ends.Client, (c, s) =>
        {
            c.CertificateChainPolicy = null;
            s.ServerCertificateContext = Certificates.Context(Certificates.SelfSigned);
        }),
        ["a callback that rejects"] = Refusal(Ends.Client, (c, _) => c.RemoteCertificateValidationCallback = (_, _, _, _) => false),
        ["a callback that throws"] = new(
            typeof(InsufficientMemoryException),
            Ends.Client,
            (c, _) => c.RemoteCertificateValidationCallback = (_, _, _, _) => throw new InsufficientMemoryException("thrown")),
        ["a server's callback that rejects the client"] = Refusal(Ends.Server, (c, s) =>
        {
            c.ClientCertificateContext = Certificates.ClientContext;
            s.ClientCertificateRequired = true;
            s.RemoteCertificateValidationCallback = (_, _, _, _) => false;
        }),
        ["a client certificate that nobody trusts"] = Refusal(Ends.Server, (c, s) =>
        {
            c.ClientCertificateContext = Certificates.Context(Certificates.SelfSigned);
            s.ClientCertificateRequired = true;
        }),
        ["a client certificate that is missing"] = Refusal(Ends.Server, (_, s) => s.ClientCertificateRequired = true),
        ["no application protocol in common"] = Refusal(Ends.Both, (c, s) =>
        {
            c.ApplicationProtocols = [SslApplicationProtocol.Http2];
            s.ApplicationProtocols = [SslApplicationProtocol.Http11];
        }),
        ["no version in common"] = Refusal(
            Ends.Both,
            (c, s) => s.EnabledSslProtocols = c.EnabledSslProtocols == SslProtocols.Tls12 ? SslProtocols.Tls13 : SslProtocols.Tls12),
        ["no cipher suite in common"] = Refusal(Ends.Both, (c, s) =>
        {
            c.CipherSuitesPolicy = new([TlsCipherSuite.TLS_AES_128_GCM_SHA256, TlsCipherSuite.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256]);
            s.CipherSuitesPolicy = new([TlsCipherSuite.TLS_AES_256_GCM_SHA384, TlsCipherSuite.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384]);
        }),
    };
#pragma warning restore CA1416

    public static TheoryData<TlsMode, SslProtocols> OnOpenSsl => Modes.AllOnOpenSsl;

    public static TheoryData<TlsMode, SslProtocols, string> Failures => Modes.AllOnOpenSslWith<string>(s_failures.Keys);

    /// <summary>Gets the failures after which the streams are used: one for each way in which an end can find a fault.</summary>
    public static TheoryData<TlsMode, SslProtocols, string> UsedAfter => Modes.AllWith(
        "a wrong host name",
        "a callback that rejects",
        "a client certificate that nobody trusts",
        "a client certificate that is missing",
        "no version in common");

    [Theory]
    [MemberData(nameof(Failures))]
    public async Task It_fails_as_on_SslStream(TlsMode mode, SslProtocols version, string what)
    {
        Failure failure = s_failures[what];
        Outcome expected = await TryAsync(TlsMode.Stock, version, failure);
        Outcome actual = await TryAsync(mode, version, failure);

        bool serverFails = failure.Ends.HasFlag(Ends.Server);
        Exception cause = (serverFails ? expected.Server : expected.Client)!;
        Assert.IsType(failure.Type, cause is AuthenticationException { InnerException: { } inner } && inner.GetType() == failure.Type ? inner : cause);
        Assert.Equal(Shape(cause), Shape(serverFails ? actual.Server : actual.Client));
        if (failure.Ends == Ends.Both)
        {
            HandshakePeerTests.AssertSame(expected.Client!, actual.Client!);
            HandshakePeerTests.AssertSame(expected.Server!, actual.Server!);
        }
    }

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
    [MemberData(nameof(UsedAfter))]
    public async Task A_failed_handshake_fails_everything_after_it_as_on_SslStream(TlsMode mode, SslProtocols version, string what)
    {
        Failure failure = s_failures[what];
        foreach (Ends end in Enum.GetValues<Ends>().Where(end => end != Ends.Both && failure.Ends.HasFlag(end)))
        {
            string actual = await SideBySide.RunAsync(mode, each => UseAsync(each, isServer: end == Ends.Server));
            Assert.DoesNotContain("good", actual, StringComparison.Ordinal);
        }

        async Task<string> UseAsync(TlsMode each, bool isServer)
        {
            await using TlsPair pair = await TlsPair.CreateAsync(isServer ? TlsMode.Stock : each, isServer ? each : TlsMode.Stock);
            SslClientAuthenticationOptions client = Handshakes.ClientOptions(version);
            SslServerAuthenticationOptions server = Handshakes.ServerOptions(version);
            failure.Spoil(client, server);
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

    private static Failure Refusal(Ends ends, Action<SslClientAuthenticationOptions, SslServerAuthenticationOptions> spoil) =>
        new(typeof(AuthenticationException), ends, spoil);

    /// <summary>
    /// Runs both ends in one mode. An end that fails closes its socket; an end that succeeds reads a byte.
    /// </summary>
    private static async Task<Outcome> TryAsync(TlsMode mode, SslProtocols version, Failure failure)
    {
        await using TlsPair pair = await TlsPair.CreateAsync(mode, mode);
        SslClientAuthenticationOptions clientOptions = Handshakes.ClientOptions(version);
        SslServerAuthenticationOptions serverOptions = Handshakes.ServerOptions(version);
        failure.Spoil(clientOptions, serverOptions);

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

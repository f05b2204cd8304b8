using System.Net.Security;
using System.Net.Sockets;
using System.Security.Authentication;
using KernelTls.Tests;

namespace KernelTls.ConformanceTests;

/// <summary>Tests callbacks for the server's options that fail, and clients that fail before the callback.</summary>
public class ServerOptionsFailureTests
{
    public static TheoryData<TlsMode> EveryMode => [.. Modes.Every];

    public static TheoryData<TlsMode, SslProtocols> All => Modes.All;

    public static TheoryData<TlsMode, SslProtocols, string> Throwing => Modes.AllWith(
        "application", "authentication", "cancelled", "I/O", "unsupported",
        "application, later", "authentication, later", "cancelled, later", "I/O, later", "unsupported, later");

    public static TheoryData<TlsMode, string> BadOptions => Modes.With(
        "null", "no certificate", "two certificate sources", "certificate without key", "two validation callbacks",
        "no common version", "no common application protocol");

    public static TheoryData<TlsMode, string> BadPeers => Modes.With("closes", "closes inside the record", "HTTP", "resets");

    [Theory]
    [MemberData(nameof(Throwing))]
    public async Task What_the_callback_throws_is_how_the_handshake_fails(TlsMode mode, SslProtocols version, string what)
    {
        Exception thrown = what.Split(',')[0] switch
        {
            "application" => new InsufficientMemoryException("thrown"),
            "authentication" => new AuthenticationException("thrown"),
            "cancelled" => new OperationCanceledException("thrown"),
            "I/O" => new IOException("thrown"),
            _ => new NotSupportedException("thrown"),
        };
        await using Meeting meeting = await new Meeting(TlsMode.Stock, mode, version)
        {
            ServerHandshake = s => s.HandshakeAsServerAsync(
                async (_, _, _, _) =>
                {
                    if (what.EndsWith("later", StringComparison.Ordinal))
                    {
                        await Task.Yield();
                    }

                    throw thrown;
                },
                null),
        }.RunAsync();

        Assert.Same(thrown, meeting.ServerEnding.Handshake);
        Assert.NotNull(meeting.ClientEnding.Handshake);
        Assert.False(meeting.Server.IsAuthenticated);
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task A_callback_that_throws_before_it_has_a_task_fails_the_handshake_alike(TlsMode mode, SslProtocols version)
    {
        InsufficientMemoryException thrown = new("thrown");
        await using Meeting meeting = await new Meeting(TlsMode.Stock, mode, version)
        {
            ServerHandshake = s => s.HandshakeAsServerAsync((_, _, _, _) => throw thrown, null),
        }.RunAsync();

        Assert.Same(thrown, meeting.ServerEnding.Handshake);
        Assert.NotNull(meeting.ClientEnding.Handshake);
    }

    [Theory]
    [MemberData(nameof(BadOptions))]
    public async Task Options_that_will_not_do_fail_as_on_SslStream(TlsMode mode, string what)
    {
        async Task<string> EndAsync(TlsMode each)
        {
            await using Meeting meeting = await new Meeting(TlsMode.Stock, each, SslProtocols.Tls13)
            {
                ClientOptions = c => c.ApplicationProtocols = [SslApplicationProtocol.Http2],
                ServerValidation = what == "two validation callbacks" ? (_, _, _, _) => true : null,
                ServerHandshake = s => s.HandshakeAsServerAsync(
                    async (_, _, _, _) =>
                    {
                        await Task.Yield();
                        return Bad(what)!;
                    },
                    null),
            }.RunAsync();
            Assert.NotNull(meeting.ClientEnding.Handshake);
            return $"{meeting.ServerEnding}";
        }

        string actual = await SideBySide.RunAsync(mode, EndAsync);
        string expected = what switch
        {
            "null" => nameof(NullReferenceException),
            "no certificate" => nameof(NotSupportedException),
            "two certificate sources" or "two validation callbacks" => nameof(InvalidOperationException),
            _ => nameof(AuthenticationException),
        };
        Assert.Equal($"handshake: {expected}", actual);
    }

    [Theory]
    [MemberData(nameof(EveryMode))]
    public async Task No_callback_at_all_fails_as_on_SslStream(TlsMode mode)
    {
        async Task<string> EndAsync(TlsMode each)
        {
            await using Meeting meeting = await new Meeting(TlsMode.Stock, each, SslProtocols.Tls13)
            {
                ServerHandshake = s => s.HandshakeAsServerAsync((ServerOptionsSelectionCallback)null!, null),
            }.RunAsync();
            return $"{meeting.ServerEnding}";
        }

        string actual = await SideBySide.RunAsync(mode, EndAsync);
        Assert.StartsWith("handshake: ", actual, StringComparison.Ordinal);
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task Cancellation_reaches_the_callback_and_ends_the_handshake(TlsMode mode, SslProtocols version)
    {
        using CancellationTokenSource source = new();
        TaskCompletionSource called = new(TaskCreationOptions.RunContinuationsAsynchronously);
        Meeting meeting = new(TlsMode.Stock, mode, version)
        {
            ServerHandshake = s => s.HandshakeAsServerAsync(
                async (_, _, _, token) =>
                {
                    called.SetResult();
                    await Task.Delay(Timeout.Infinite, token);
                    return Handshakes.ServerOptions(version);
                },
                null,
                source.Token),
        };
        Task<Meeting> running = meeting.RunAsync();
        await called.Task.InTime("the callback");

        await source.CancelAsync();

        await using Meeting ended = await running.InTime("the cancelled handshake");
        OperationCanceledException e = Assert.IsAssignableFrom<OperationCanceledException>(ended.ServerEnding.Handshake);
        Assert.Equal(source.Token, e.CancellationToken);
        Assert.NotNull(ended.ClientEnding.Handshake);
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task A_token_cancelled_beforehand_keeps_the_callback_from_being_called(TlsMode mode, SslProtocols version)
    {
        bool called = false;
        await using Meeting meeting = await new Meeting(TlsMode.Stock, mode, version)
        {
            ServerHandshake = s => s.HandshakeAsServerAsync(
                (_, _, _, _) =>
                {
                    called = true;
                    return ValueTask.FromResult(Handshakes.ServerOptions(version));
                },
                null,
                new CancellationToken(true)),
        }.RunAsync();

        Assert.IsAssignableFrom<OperationCanceledException>(meeting.ServerEnding.Handshake);
        Assert.False(called);
    }

    [Theory]
    [MemberData(nameof(BadPeers))]
    public async Task Without_a_ClientHello_the_callback_is_not_called(TlsMode mode, string peer)
    {
        async Task<string> EndAsync(TlsMode each)
        {
            using SocketPair sockets = await SocketPair.ConnectAsync();
            await using SslStream stream = Modes.Create(each, new NetworkStream(sockets.Server));
            bool called = false;
            List<string> fallbacks = Fallbacks.Collect();
            Task shaking = stream.HandshakeAsServerAsync(
                (_, _, _, _) =>
                {
                    called = true;
                    return ValueTask.FromResult(Handshakes.ServerOptions(SslProtocols.None));
                },
                null);
            byte[] says = peer switch
            {
                "HTTP" => "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"u8.ToArray(),
                "closes inside the record" => [22, 3, 1, 0, 200, 1, 0, 0, 196, 3, 3],
                _ => [],
            };
            await sockets.Client.SendAsync(says);
            if (peer == "resets")
            {
                sockets.Client.LingerState = new LingerOption(true, 0);
                sockets.Client.Dispose();
            }
            else
            {
                sockets.Client.Shutdown(SocketShutdown.Send);
            }

            Exception? failure = await Record.ExceptionAsync(() => shaking.InTime($"a handshake with a peer that {peer}"));
            Assert.NotNull(failure);
            Assert.False(called);
            if (each is TlsMode.DirectOpenSsl or TlsMode.Kernel)
            {
                Assert.Empty(fallbacks);
            }

            return $"{new Ending(failure, null)}";
        }

        Assert.StartsWith("handshake: ", await SideBySide.RunAsync(mode, EndAsync), StringComparison.Ordinal);
    }

    private static SslServerAuthenticationOptions? Bad(string what)
    {
        SslServerAuthenticationOptions options = Handshakes.ServerOptions(SslProtocols.None);
        switch (what)
        {
            case "null":
                return null;
            case "no certificate":
                options.ServerCertificateContext = null;
                break;
            case "two certificate sources":
                options.ServerCertificateSelectionCallback = (_, _) => Certificates.Rsa;
                break;
            case "certificate without key":
                options.ServerCertificateContext = null;
                options.ServerCertificate = Certificates.WithoutKey(Certificates.Ecdsa);
                break;
            case "two validation callbacks":
                options.RemoteCertificateValidationCallback = (_, _, _, _) => false;
                break;
            case "no common version":
                options.EnabledSslProtocols = SslProtocols.Tls12;
                break;
            case "no common application protocol":
                options.ApplicationProtocols = [SslApplicationProtocol.Http11];
                break;
            default:
                Assert.Fail(what);
                break;
        }

        return options;
    }
}

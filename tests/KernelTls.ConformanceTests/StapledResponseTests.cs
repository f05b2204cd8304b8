using System.Net.Security;
using System.Security.Authentication;
using System.Security.Cryptography.X509Certificates;
using KernelTls.Interop;
using KernelTls.Tests;

namespace KernelTls.ConformanceTests;

/// <summary>
/// Tests what a client makes of the OCSP response that a server staples (RFC 6066, section 8): it decides as it does on
/// SslStream, and the client does not ask the responder.
/// </summary>
public class StapledResponseTests
{
    private const X509VerificationFlags Soft = X509VerificationFlags.IgnoreEndRevocationUnknown;

    private static readonly (X509RevocationMode Mode, X509VerificationFlags Flags)[] s_checks =
    [
        (X509RevocationMode.NoCheck, X509VerificationFlags.NoFlag),
        (X509RevocationMode.Online, X509VerificationFlags.NoFlag), (X509RevocationMode.Online, Soft),
        (X509RevocationMode.Offline, X509VerificationFlags.NoFlag), (X509RevocationMode.Offline, Soft),
    ];

    private static readonly bool[] s_either = [false, true];

    private static int s_hosts;

    public static TheoryData<TlsMode, SslProtocols> All => Modes.All;

    public static TheoryData<TlsMode, SslProtocols> AllOnOpenSsl => Modes.AllOnOpenSsl;

    public static TheoryData<TlsMode, SslProtocols, string> Responses =>
        Modes.AllWith(StaplingServer.Good, StaplingServer.Revoked, StaplingServer.None);

    [Theory]
    [MemberData(nameof(Responses))]
    public async Task A_response_decides_as_on_SslStream(TlsMode mode, SslProtocols version, string response)
    {
        using StaplingServer server = await StaplingServer.StartAsync(version, response);
        foreach ((X509RevocationMode check, X509VerificationFlags flags) in s_checks)
        {
            foreach (bool blocks in s_either)
            {
                string what = $"{check}, {flags}, blocking: {blocks}";
                string actual = await RunAsync(mode, version, async each =>
                {
                    await using SslStream client = await server.ConnectAsync(each);
                    Exception? failure = await Record.ExceptionAsync(() => ShakeAsync(client, Options(version, check, flags), blocks));
                    return failure is null ? "good" : $"{new Ending(failure, null)}";
                }, what);
                Assert.True(Accepts(mode, version, response, check, flags) == (actual == "good"), $"{what}: {actual}");
            }
        }
    }

    [Theory]
    [MemberData(nameof(Responses))]
    public async Task A_callback_sees_what_it_sees_on_SslStream(TlsMode mode, SslProtocols version, string response)
    {
        using StaplingServer server = await StaplingServer.StartAsync(version, response);
        foreach ((X509RevocationMode check, X509VerificationFlags flags) in s_checks)
        {
            foreach (bool accepts in s_either)
            {
                string what = $"{check}, {flags}, accepts: {accepts}";
                string actual = await RunAsync(mode, version, async each =>
                {
                    Calls calls = new();
                    SslClientAuthenticationOptions options = Options(version, check, flags);
                    options.RemoteCertificateValidationCallback = (sender, certificate, chain, errors) =>
                    {
                        SslStream stream = (SslStream)sender;
                        calls.Add(
                            certificate, errors, string.Join(' ', chain!.ChainStatus.Select(s => s.Status).Order()), stream.SslProtocol,
                            OwnChain(certificate!));
                        return accepts;
                    };
                    await using SslStream client = await server.ConnectAsync(each);
                    Exception? failure = await Record.ExceptionAsync(() => ShakeAsync(client, options, blocks: false));
                    Assert.Equal(accepts, failure is null);
                    return $"{Assert.Single(calls.List)} {new Ending(failure, null)}";
                }, what);
                Assert.True(
                    Accepts(mode, version, response, check, flags) == actual.Contains($"| {SslPolicyErrors.None} |", StringComparison.Ordinal),
                    $"{what}: {actual}");
            }
        }
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task A_good_response_needs_no_network(TlsMode mode, SslProtocols version)
    {
        foreach (string response in new[] { StaplingServer.Good, StaplingServer.Revoked })
        {
            using StaplingServer server = await StaplingServer.StartAsync(version, response);
            await using SslStream client = await server.ConnectAsync(mode);

            Exception? failure = await Record.ExceptionAsync(
                () => ShakeAsync(client, Options(version, X509RevocationMode.Online, X509VerificationFlags.NoFlag), blocks: false));

            bool isSeen = IsSeen(mode, version);
            Assert.Equal(response == StaplingServer.Good && isSeen, failure is null);
            Assert.Equal(!isSeen, server.IsResponderAsked);
        }
    }

    /// <summary>
    /// The session keeps the certificate, and the certificate the response, even if the first connection did not care.
    /// </summary>
    [Theory]
    [MemberData(nameof(Responses))]
    public async Task A_response_decides_about_resumed_sessions(TlsMode mode, SslProtocols version, string response)
    {
        using StaplingServer server = await StaplingServer.StartAsync(version, response);
        foreach (X509RevocationMode first in new[] { X509RevocationMode.NoCheck, X509RevocationMode.Offline })
        {
            foreach ((X509RevocationMode check, X509VerificationFlags flags) in s_checks)
            {
                foreach (bool hasCallback in s_either)
                {
                    string what = $"{first}, then {check}, {flags}, callback: {hasCallback}";
                    string actual = await RunAsync(mode, version, async each =>
                    {
                        Calls calls = new();
                        string host = $"staple{Interlocked.Increment(ref s_hosts):D6}.test";
                        await using (SslStream client = await server.ConnectAsync(each))
                        {
                            SslClientAuthenticationOptions options = Resuming(Options(version, first, X509VerificationFlags.NoFlag), host);
                            options.RemoteCertificateValidationCallback = (_, _, _, _) => true;
                            await ShakeAsync(client, options, blocks: false);
                            Assert.False(await StaplingServer.IsResumedAsync(client), what);
                        }

                        await using SslStream again = await server.ConnectAsync(each);
                        SslClientAuthenticationOptions changed = Resuming(Options(version, check, flags), host);
                        changed.RemoteCertificateValidationCallback = !hasCallback ? null : (_, certificate, chain, errors) =>
                        {
                            calls.Add(errors, string.Join(' ', chain!.ChainStatus.Select(s => s.Status).Order()), OwnChain(certificate!));
                            return true;
                        };
                        Exception? failure = await Record.ExceptionAsync(() => ShakeAsync(again, changed, blocks: false));
                        bool resumed = failure is null && await StaplingServer.IsResumedAsync(again);
                        Assert.True(resumed || failure is not null, $"{each}, {what}: a new session");
                        return $"{new Ending(failure, null)} {calls}";
                    }, what);
                    Assert.True(
                        Accepts(mode, version, response, check, flags)
                            == (hasCallback ? actual.StartsWith($"good {SslPolicyErrors.None} ", StringComparison.Ordinal) : actual == "good "),
                        $"{what}: {actual}");
                }
            }
        }
    }

    /// <summary>An application may build its own chain from what the stream gives it.</summary>
    [Theory]
    [MemberData(nameof(Responses))]
    public async Task The_certificate_carries_the_response_as_on_SslStream(TlsMode mode, SslProtocols version, string response)
    {
        using StaplingServer server = await StaplingServer.StartAsync(version, response);
        string actual = await RunAsync(mode, version, async each =>
        {
            await using SslStream client = await server.ConnectAsync(each);
            await ShakeAsync(client, Options(version, X509RevocationMode.NoCheck, X509VerificationFlags.NoFlag), blocks: false);
            return OwnChain(client.RemoteCertificate!);
        });

        string seen = IsSeen(mode, version) ? response : StaplingServer.None;
        Assert.Equal(
            seen switch
            {
                StaplingServer.Good => "",
                StaplingServer.Revoked => $"{X509ChainStatusFlags.Revoked}",
                _ => $"{X509ChainStatusFlags.RevocationStatusUnknown} {X509ChainStatusFlags.OfflineRevocation}",
            },
            actual);
    }

    [Theory]
    [MemberData(nameof(AllOnOpenSsl))]
    public async Task Required_and_preferred_decide_alike(TlsMode mode, SslProtocols version)
    {
        foreach (string response in new[] { StaplingServer.Good, StaplingServer.Revoked })
        {
            using StaplingServer server = await StaplingServer.StartAsync(version, response);
            foreach (KtlsMode wish in mode == TlsMode.Kernel ? [KtlsMode.Required, KtlsMode.Preferred] : new[] { KtlsMode.Disabled })
            {
                await using SslStream client = await server.ConnectAsync(mode, o => o.Mode = wish);

                Exception? failure = await Record.ExceptionAsync(
                    () => ShakeAsync(client, Options(version, X509RevocationMode.Online, Soft), blocks: false));

                if (response == StaplingServer.Good)
                {
                    Assert.Null(failure);
                    Modes.AssertIn(mode, client);
                    Assert.False(await StaplingServer.IsResumedAsync(client));
                }
                else
                {
                    Assert.IsType<AuthenticationException>(failure);
                }
            }
        }
    }

    private static bool Accepts(
        TlsMode mode, SslProtocols version, string response, X509RevocationMode check, X509VerificationFlags flags) =>
        check == X509RevocationMode.NoCheck || (IsSeen(mode, version) ? response : StaplingServer.None) switch
        {
            StaplingServer.Good => true,
            StaplingServer.Revoked => false,
            _ => flags == Soft,
        };

    /// <summary>
    /// Returns whether the response is there when the certificate is validated. SslStream of .NET 11 validates it before
    /// TLS 1.2 sends the response.
    /// </summary>
    private static bool IsSeen(TlsMode mode, SslProtocols version) =>
        Modes.OnOpenSsl.Contains(mode) || version != SslProtocols.Tls12 || !RuntimeBehavior.RefusesInHandshake;

    /// <summary>Compares with SslStream, if SslStream sees the response.</summary>
    private static Task<string> RunAsync(TlsMode mode, SslProtocols version, Func<TlsMode, Task<string>> body, string what = "") =>
        IsSeen(TlsMode.Stock, version) ? SideBySide.RunAsync(mode, body, what) : body(mode);

    /// <summary>
    /// Returns the errors of a chain that an application builds from the certificate, which looks only into the
    /// response.
    /// </summary>
    private static string OwnChain(X509Certificate certificate)
    {
        using X509Chain chain = new();
        chain.ChainPolicy = Policy(X509RevocationMode.Offline, X509VerificationFlags.NoFlag);
        _ = chain.Build((X509Certificate2)certificate);
        return string.Join(' ', chain.ChainStatus.Select(s => s.Status).Order());
    }

    private static SslClientAuthenticationOptions Options(
        SslProtocols version, X509RevocationMode check, X509VerificationFlags flags)
    {
        SslClientAuthenticationOptions options = Handshakes.ClientOptions(version);
        options.CertificateChainPolicy = Policy(check, flags);
        return options;
    }

    private static SslClientAuthenticationOptions Resuming(SslClientAuthenticationOptions options, string host)
    {
        options.AllowTlsResume = true;
        options.TargetHost = host;
        options.CertificateChainPolicy!.VerificationFlags |= X509VerificationFlags.IgnoreInvalidName;
        return options;
    }

    private static X509ChainPolicy Policy(X509RevocationMode check, X509VerificationFlags flags)
    {
        X509ChainPolicy policy = Certificates.Trust();
        policy.RevocationMode = check;
        policy.VerificationFlags = flags;
        policy.UrlRetrievalTimeout = TimeSpan.FromMilliseconds(200);
        return policy;
    }

    private static async Task ShakeAsync(SslStream client, SslClientAuthenticationOptions options, bool blocks)
    {
        Task shaking = blocks ? Task.Run(() => client.ShakeClient(options)) : client.HandshakeAsClientAsync(options);
        await shaking.InTime("a handshake with s_server");
    }
}

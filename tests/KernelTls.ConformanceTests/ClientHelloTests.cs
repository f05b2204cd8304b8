using System.Net.Security;
using System.Net.Sockets;
using System.Security.Authentication;
using System.Security.Cryptography.X509Certificates;
using System.Text;
using KernelTls.Tests;

namespace KernelTls.ConformanceTests;

#pragma warning disable CA1416 // Linux

/// <summary>
/// Tests that a client sends SslStream's ClientHello for every option that changes it, and for those that do not:
/// extension by extension, for new sessions and for resumed ones.
/// </summary>
public class ClientHelloTests
{
    private const SslProtocols Both = SslProtocols.Tls12 | SslProtocols.Tls13;
    private const int StatusRequest = 5;

    private static readonly SslProtocols[] s_versions = [SslProtocols.None, SslProtocols.Tls12, SslProtocols.Tls13, Both];

    private static readonly Dictionary<string, Action<SslClientAuthenticationOptions>> s_options = new()
    {
        ["defaults"] = _ => { },
        ["no chain policy"] = o => o.CertificateChainPolicy = null,
        ["Online"] = o => o.CertificateRevocationCheckMode = X509RevocationMode.Online,
        ["Offline"] = o => o.CertificateRevocationCheckMode = X509RevocationMode.Offline,
        ["Online by policy"] = o => o.CertificateChainPolicy!.RevocationMode = X509RevocationMode.Online,
        ["Offline by policy"] = o => o.CertificateChainPolicy!.RevocationMode = X509RevocationMode.Offline,
        ["validation callback"] = o => o.RemoteCertificateValidationCallback = (_, _, _, _) => true,
        ["application protocols"] = o => o.ApplicationProtocols = [SslApplicationProtocol.Http2, SslApplicationProtocol.Http11],
        ["no PSS"] = o => o.AllowRsaPssPadding = false,
        ["no PKCS #1"] = o => o.AllowRsaPkcs1Padding = false,
        ["neither padding"] = o => o.AllowRsaPssPadding = o.AllowRsaPkcs1Padding = false,
        ["no renegotiation"] = o => o.AllowRenegotiation = false,
        ["no resumption"] = o => o.AllowTlsResume = false,
        ["certificate context"] = o => o.ClientCertificateContext = Certificates.ClientContext,
        ["certificates"] = o => o.ClientCertificates = [Certificates.Client],
        ["no certificates"] = o => o.ClientCertificates = [],
        ["certificate callback"] = o => o.LocalCertificateSelectionCallback = (_, _, _, _, _) => Certificates.Client,
        ["certificate callback that waits"] = o => o.LocalCertificateSelectionCallback = (_, _, _, _, _) => null!,
        ["certificate without a key"] = o => o.ClientCertificates = [Certificates.WithoutKey(Certificates.Client)],
        ["suites"] = o => o.CipherSuitesPolicy = new CipherSuitesPolicy(
            [TlsCipherSuite.TLS_AES_256_GCM_SHA384, TlsCipherSuite.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384]),
        ["no name"] = o => o.TargetHost = "",
        ["IPv4 address"] = o => o.TargetHost = "127.0.0.1",
        ["IPv6 address"] = o => o.TargetHost = "::1",
    };

    private static int s_hosts;

    public static TheoryData<TlsMode, string> Options => Modes.With<string>(s_options.Keys);

    public static TheoryData<TlsMode, SslProtocols, X509RevocationMode> Resumptions =>
        Modes.AllWith(X509RevocationMode.NoCheck, X509RevocationMode.Online);

    [Theory]
    [MemberData(nameof(Options))]
    public async Task An_option_changes_the_ClientHello_as_on_SslStream(TlsMode mode, string what)
    {
        foreach (SslProtocols version in s_versions)
        {
            if (!RsaPaddings.CanBeLimited && what is ("no PSS" or "no PKCS #1" or "neither padding"))
            {
                await SideBySide.RunAsync(mode, each => RefuseAsync(each, ClientOptions("localhost", version, s_options[what])), $"{version}");
                continue;
            }

            string host = $"host{Interlocked.Increment(ref s_hosts):D6}.test";
            string hello = await SideBySide.RunAsync(mode, each => OfferAsync(each, ClientOptions(host, version, s_options[what])), $"{version}");
            Assert.Contains($"extension {StatusRequest} 0100000000", hello, StringComparison.Ordinal);
        }
    }

    [Theory]
    [MemberData(nameof(Resumptions))]
    public async Task A_session_is_offered_as_on_SslStream(TlsMode mode, SslProtocols version, X509RevocationMode revocation)
    {
        const int sessionTicket = 35;
        const int preSharedKey = 41;
        string hello = await SideBySide.RunAsync(mode, async each =>
        {
            string host = $"host{Interlocked.Increment(ref s_hosts):D6}.test";
            void Change(SslClientAuthenticationOptions o)
            {
                o.CertificateRevocationCheckMode = revocation;
                o.RemoteCertificateValidationCallback = (_, _, _, _) => true;
            }

            await using (TlsPair pair = await TlsPair.ConnectAsync(each, TlsMode.Stock, version, o =>
            {
                (o.TargetHost, o.AllowTlsResume) = (host, true);
                Change(o);
            }))
            {
                await pair.ExchangeAsync(1000);
            }

            string offered = await OfferAsync(each, ClientOptions(host, version, Change));
            return offered.Replace(Convert.ToHexString(Encoding.ASCII.GetBytes(host)), "host", StringComparison.Ordinal);
        });
        Assert.Contains($"extension {StatusRequest} 0100000000", hello, StringComparison.Ordinal);
        string session = version == SslProtocols.Tls13 ? $"extension {preSharedKey} of " : $"extension {sessionTicket} of ";
        Assert.Contains(session, hello, StringComparison.Ordinal);
        Assert.DoesNotContain($"{session}0", hello, StringComparison.Ordinal);
    }

    private static SslClientAuthenticationOptions ClientOptions(
        string host, SslProtocols version, Action<SslClientAuthenticationOptions> change)
    {
        SslClientAuthenticationOptions options = Handshakes.ClientOptions(version);
        options.TargetHost = host;
        options.AllowTlsResume = true;
        change(options);
        return options;
    }

    /// <summary>Returns the exception for options that OpenSSL refuses.</summary>
    private static async Task<string> RefuseAsync(TlsMode mode, SslClientAuthenticationOptions options)
    {
        List<string> fallbacks = Fallbacks.Collect();
        using SocketPair sockets = await SocketPair.ConnectAsync();
        await using SslStream client = Modes.Create(mode, new NetworkStream(sockets.Client));
        Exception refused = await Assert.ThrowsAnyAsync<Exception>(() => client.HandshakeAsClientAsync(options).InTime("the refusal"));
        if (Modes.OnOpenSsl.Contains(mode))
        {
            Assert.Equal([$"{KtlsFallbackReason.OpenSslRefusedOptions}"], fallbacks);
        }

        return $"{refused.GetType()}: {refused.Message}";
    }

    /// <summary>Returns the ClientHello for the options. The handshake ends there.</summary>
    private static async Task<string> OfferAsync(TlsMode mode, SslClientAuthenticationOptions options)
    {
        List<string> fallbacks = Fallbacks.Collect();
        using SocketPair sockets = await SocketPair.ConnectAsync();
        await using SslStream client = Modes.Create(mode, new NetworkStream(sockets.Client));
        Task shaking = client.HandshakeAsClientAsync(options);
        byte[] record = await HelloProbe.ReadRecordAsync(sockets.Server);
        sockets.Server.Dispose();
        await Assert.ThrowsAnyAsync<Exception>(() => shaking.InTime("the handshake to break off"));
        if (Modes.OnOpenSsl.Contains(mode))
        {
            Assert.Empty(fallbacks);
        }

        return HelloProbe.Describe(record);
    }
}

using System.Net.Security;
using System.Security.Authentication;
using System.Security.Cryptography.X509Certificates;
using KernelTls.Tests;

namespace KernelTls.ConformanceTests;

/// <summary>Tests certificates in handshakes with both ends in the mode under test.</summary>
public class HandshakeCertificateTests
{
    public static TheoryData<TlsMode, SslProtocols> All => Modes.All;

    public static TheoryData<TlsMode, SslProtocols> OnOpenSsl => Modes.AllOnOpenSsl;

    /// <summary>SslStream's own result depends on the version and on resumption.</summary>
    [Theory]
    [MemberData(nameof(OnOpenSsl))]
    public async Task A_client_certificate_that_nobody_asked_for_authenticates_nobody(TlsMode mode, SslProtocols version)
    {
        await using TlsPair pair = await TlsPair.ConnectAsync(
            mode, version, client => client.ClientCertificateContext = Certificates.ClientContext);

        Assert.False(pair.Client.IsMutuallyAuthenticated);
        Assert.False(pair.Server.IsMutuallyAuthenticated);
        Assert.Null(pair.Client.LocalCertificate);
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task A_client_certificate_is_sent_and_judged(TlsMode mode, SslProtocols version)
    {
        SslPolicyErrors? verdict = null;
        await using TlsPair pair = await TlsPair.ConnectAsync(
            mode,
            version,
            client => client.ClientCertificateContext = Certificates.ClientContext,
            server =>
            {
                server.ClientCertificateRequired = true;
                server.RemoteCertificateValidationCallback = (_, _, _, errors) =>
                {
                    verdict = errors;
                    return true;
                };
            });

        // Both ends count as authenticated once data has arrived.
        await pair.Client.WriteAsync(new byte[1]).InTime();
        await pair.Server.ReadExactlyAsync(new byte[1]).InTime();
        Assert.Equal(SslPolicyErrors.None, verdict);
        Assert.Equal(Certificates.Client.GetCertHashString(), pair.Server.RemoteCertificate!.GetCertHashString());
        Assert.Equal(Certificates.Client.GetCertHashString(), pair.Client.LocalCertificate!.GetCertHashString());
        Assert.True(pair.Client.IsMutuallyAuthenticated);
        Assert.True(pair.Server.IsMutuallyAuthenticated);
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task A_client_certificate_may_be_absent_where_the_callback_allows_it(TlsMode mode, SslProtocols version)
    {
        List<(X509Certificate? Certificate, SslPolicyErrors Errors)> seen = [];
        await using TlsPair pair = await TlsPair.ConnectAsync(
            mode,
            version,
            server: server =>
            {
                server.ClientCertificateRequired = true;
                server.RemoteCertificateValidationCallback = (_, certificate, _, errors) =>
                {
                    seen.Add((certificate, errors));
                    return true;
                };
            });

        Assert.Equal([(null, SslPolicyErrors.RemoteCertificateNotAvailable)], seen);
        Assert.Null(pair.Server.RemoteCertificate);
        Assert.False(pair.Server.IsMutuallyAuthenticated);
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task Intermediates_are_sent_along(TlsMode mode, SslProtocols version)
    {
        int length = 0;
        await using TlsPair pair = await TlsPair.ConnectAsync(
            mode,
            version,
            client => client.RemoteCertificateValidationCallback = (_, _, chain, errors) =>
            {
                length = chain!.ChainElements.Count;
                return errors == SslPolicyErrors.None;
            },
            server => server.ServerCertificateContext = Certificates.ChainedContext);

        Assert.Equal(3, length);
        Assert.True(pair.Client.IsAuthenticated);
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task An_RSA_certificate_does_as_well(TlsMode mode, SslProtocols version)
    {
        await using TlsPair pair = await TlsPair.ConnectAsync(
            mode, version, server: server => server.ServerCertificateContext = Certificates.RsaContext);

        Assert.Equal(Certificates.Rsa.GetCertHashString(), pair.Client.RemoteCertificate!.GetCertHashString());
    }

    [Theory]
    [MemberData(nameof(All))]
    public async Task The_callback_gets_the_stream_the_certificate_the_chain_and_the_errors(TlsMode mode, SslProtocols version)
    {
        object? sender = null;
        SslPolicyErrors errors = default;
        X509ChainStatusFlags status = default;
        bool handedOut = false;
        await using TlsPair pair = await TlsPair.ConnectAsync(
            mode,
            version,
            client =>
            {
                client.TargetHost = "other.test";
                client.CertificateChainPolicy = null;
                client.RemoteCertificateValidationCallback = (s, certificate, chain, e) =>
                {
                    (sender, errors) = (s, e);
                    status = chain!.ChainStatus.Aggregate(X509ChainStatusFlags.NoError, (all, one) => all | one.Status);
                    handedOut = certificate is X509Certificate2 && chain.ChainElements.Count > 0;
                    return true;
                };
            });

        Assert.Same(pair.Client, sender);
        Assert.True(handedOut);
        Assert.Equal(SslPolicyErrors.RemoteCertificateChainErrors | SslPolicyErrors.RemoteCertificateNameMismatch, errors);
        Assert.NotEqual(X509ChainStatusFlags.NoError, status);
        Assert.Equal("other.test", pair.Server.TargetHostName);
    }
}

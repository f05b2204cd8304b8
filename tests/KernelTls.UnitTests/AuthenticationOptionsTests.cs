using System.Net.Security;
using System.Reflection;
using System.Security.Authentication;
using System.Security.Cryptography;
using System.Security.Cryptography.X509Certificates;
using KernelTls.Handshake;
using KernelTls.Interop;
using KernelTls.Tests;

namespace KernelTls.UnitTests;

#pragma warning disable SYSLIB0040 // NoEncryption and AllowNoEncryption are obsolete, and still values that a caller can pass.
#pragma warning disable CA1416 // Linux
public class AuthenticationOptionsTests
{
    [Fact]
    public void Plain_client_options_are_offloaded()
    {
        HandshakeSettings settings = Client(new SslClientAuthenticationOptions { TargetHost = "localhost." });

        Assert.False(settings.IsServer);
        Assert.Equal("localhost", settings.TargetHost);
        Assert.Equal("localhost", settings.ServerName);
        Assert.True(settings.PeerCertificateRequired);
        Assert.Equal(
            ContextFlags.VerifyPeer | ContextFlags.NoTickets | ContextFlags.ReleaseBuffers | ContextFlags.EnableKtls,
            settings.Context.Flags);
    }

    [Fact]
    public void Without_the_kernel_OpenSSL_is_not_asked_for_it()
    {
        ClientHandshakeOptions.TryCreate(new SslClientAuthenticationOptions(), null, enableKtls: false, out HandshakeSettings? client);
        ServerHandshakeOptions.TryCreate(ServerOptions(), null, enableKtls: false, out HandshakeSettings? server);

        Assert.False(client!.Context.Flags.HasFlag(ContextFlags.EnableKtls));
        Assert.False(server!.Context.Flags.HasFlag(ContextFlags.EnableKtls));
    }

    public static TheoryData<string, KtlsFallbackReason> ClientReasons => new()
    {
        { nameof(SslClientAuthenticationOptions.ClientCertificates), KtlsFallbackReason.ClientCertificateSelection },
        { nameof(SslClientAuthenticationOptions.LocalCertificateSelectionCallback), KtlsFallbackReason.ClientCertificateSelection },
        { nameof(SslClientAuthenticationOptions.AllowRsaPssPadding), KtlsFallbackReason.RsaPaddingRestricted },
        { nameof(SslClientAuthenticationOptions.AllowRsaPkcs1Padding), KtlsFallbackReason.RsaPaddingRestricted },
        { nameof(SslClientAuthenticationOptions.EncryptionPolicy), KtlsFallbackReason.EncryptionPolicy },
        { nameof(SslClientAuthenticationOptions.EnabledSslProtocols), KtlsFallbackReason.ProtocolNotOffloadable },
        { nameof(SslClientAuthenticationOptions.CipherSuitesPolicy), KtlsFallbackReason.CipherSuitesPolicy },
        { "trust", KtlsFallbackReason.CertificateTrust },
    };

    [Theory]
    [MemberData(nameof(ClientReasons))]
    public void Client_options_that_are_not_offloaded_say_which(string option, KtlsFallbackReason expected)
    {
        SslClientAuthenticationOptions options = new();
        switch (option)
        {
            case nameof(options.ClientCertificates): options.ClientCertificates = [Certificates.Client]; break;
            case nameof(options.LocalCertificateSelectionCallback): options.LocalCertificateSelectionCallback = (_, _, _, _, _) => null!; break;
            case nameof(options.AllowRsaPssPadding): options.AllowRsaPssPadding = false; break;
            case nameof(options.AllowRsaPkcs1Padding): options.AllowRsaPkcs1Padding = false; break;
            case nameof(options.EncryptionPolicy): options.EncryptionPolicy = EncryptionPolicy.AllowNoEncryption; break;
            case nameof(options.EnabledSslProtocols): options.EnabledSslProtocols = SslProtocols.Tls11; break;
            case nameof(options.CipherSuitesPolicy): options.CipherSuitesPolicy = new([TlsCipherSuite.TLS_RSA_WITH_NULL_SHA]); break;
            case "trust": options.ClientCertificateContext = WithTrust(); break;
            default: Assert.Fail($"no such option: {option}"); break;
        }

        Assert.Equal(expected, ClientHandshakeOptions.TryCreate(options, null, true, out HandshakeSettings? settings));
        Assert.Null(settings);
    }

    public static TheoryData<string, KtlsFallbackReason> ServerReasons => new()
    {
        { nameof(SslServerAuthenticationOptions.ServerCertificateSelectionCallback), KtlsFallbackReason.ServerCertificateSelection },
        { nameof(SslServerAuthenticationOptions.AllowRenegotiation), KtlsFallbackReason.Renegotiation },
        { nameof(SslServerAuthenticationOptions.AllowRsaPssPadding), KtlsFallbackReason.RsaPaddingRestricted },
        { nameof(SslServerAuthenticationOptions.AllowRsaPkcs1Padding), KtlsFallbackReason.RsaPaddingRestricted },
        { nameof(SslServerAuthenticationOptions.EncryptionPolicy), KtlsFallbackReason.EncryptionPolicy },
        { nameof(SslServerAuthenticationOptions.EnabledSslProtocols), KtlsFallbackReason.ProtocolNotOffloadable },
        { nameof(SslServerAuthenticationOptions.CipherSuitesPolicy), KtlsFallbackReason.CipherSuitesPolicy },
        { "none", KtlsFallbackReason.PrivateKeyNotUsable },
        { "no key", KtlsFallbackReason.PrivateKeyNotUsable },
        { "trust", KtlsFallbackReason.CertificateTrust },
    };

    [Theory]
    [MemberData(nameof(ServerReasons))]
    public void Server_options_that_are_not_offloaded_say_which(string option, KtlsFallbackReason expected)
    {
        SslServerAuthenticationOptions options = ServerOptions();
        switch (option)
        {
            case nameof(options.ServerCertificateSelectionCallback): options.ServerCertificateSelectionCallback = (_, _) => Certificates.Ecdsa; break;
            case nameof(options.AllowRenegotiation): options.AllowRenegotiation = true; break;
            case nameof(options.AllowRsaPssPadding): options.AllowRsaPssPadding = false; break;
            case nameof(options.AllowRsaPkcs1Padding): options.AllowRsaPkcs1Padding = false; break;
            case nameof(options.EncryptionPolicy): options.EncryptionPolicy = EncryptionPolicy.NoEncryption; break;
            case nameof(options.EnabledSslProtocols): options.EnabledSslProtocols = SslProtocols.Tls11 | SslProtocols.Tls12; break;
            case nameof(options.CipherSuitesPolicy): options.CipherSuitesPolicy = new([TlsCipherSuite.TLS_RSA_WITH_NULL_SHA]); break;
            case "none": options.ServerCertificateContext = null; break;
            case "no key":
                options.ServerCertificateContext = null;
                options.ServerCertificate = X509CertificateLoader.LoadCertificate(Certificates.Ecdsa.RawData);
                break;
            case "trust": options.ServerCertificateContext = WithTrust(); break;
            default: Assert.Fail($"no such option: {option}"); break;
        }

        Assert.Equal(expected, ServerHandshakeOptions.TryCreate(options, null, true, out HandshakeSettings? settings));
        Assert.Null(settings);
    }

    [Fact]
    public void Only_RSA_and_ECDSA_keys_are_usable()
    {
        Assert.True(PrivateKey.IsUsable(Certificates.Rsa));
        Assert.True(PrivateKey.IsUsable(Certificates.Ecdsa));
        Assert.False(PrivateKey.IsUsable(X509CertificateLoader.LoadCertificate(Certificates.Ecdsa.RawData)));
        Assert.False(PrivateKey.IsUsable(WithDsaKey()));
    }

    [Fact]
    public void A_bare_server_certificate_gets_one_context_for_all_handshakes()
    {
        SslServerAuthenticationOptions options = new() { ServerCertificate = Certificates.Ecdsa };

        Assert.Same(Server(options).Context.Certificate, Server(options).Context.Certificate);
    }

    [Fact]
    public void A_server_that_asks_for_no_certificate_does_not_verify()
    {
        ContextFlags flags = Server(ServerOptions()).Context.Flags;

        Assert.Equal(ContextFlags.EnableKtls | ContextFlags.ReleaseBuffers, flags);
    }

    [Fact]
    public void A_server_that_requires_a_certificate_refuses_its_absence_and_resumes_nothing()
    {
        SslServerAuthenticationOptions options = ServerOptions();
        options.ClientCertificateRequired = true;

        ContextFlags flags = Server(options).Context.Flags;

        Assert.True(flags.HasFlag(ContextFlags.VerifyPeer | ContextFlags.RequirePeer | ContextFlags.NoTickets));
    }

    [Fact]
    public void A_callback_may_accept_the_absence_of_a_client_certificate()
    {
        SslServerAuthenticationOptions options = ServerOptions();
        options.ClientCertificateRequired = true;
        options.RemoteCertificateValidationCallback = (_, _, _, _) => true;

        HandshakeSettings settings = Server(options);

        Assert.False(settings.Context.Flags.HasFlag(ContextFlags.RequirePeer));
        Assert.True(settings.PeerCertificateRequired);
        Assert.Same(options.RemoteCertificateValidationCallback, settings.ValidationCallback);
    }

    [Fact]
    public void Forbidding_resumption_gives_out_no_tickets()
    {
        SslServerAuthenticationOptions options = ServerOptions();
        options.AllowTlsResume = false;

        Assert.True(Server(options).Context.Flags.HasFlag(ContextFlags.NoTickets));
    }

    [Fact]
    public void The_options_callback_goes_before_the_constructor_s()
    {
        RemoteCertificateValidationCallback own = (_, _, _, _) => true;
        RemoteCertificateValidationCallback other = (_, _, _, _) => false;

        ClientHandshakeOptions.TryCreate(
            new SslClientAuthenticationOptions { RemoteCertificateValidationCallback = own }, other, true, out HandshakeSettings? both);
        ClientHandshakeOptions.TryCreate(new SslClientAuthenticationOptions(), other, true, out HandshakeSettings? constructor);

        Assert.Same(own, both!.ValidationCallback);
        Assert.Same(other, constructor!.ValidationCallback);
    }

    [Fact]
    public void The_chain_policy_is_copied_so_that_one_handshake_cannot_change_it_for_another()
    {
        SslClientAuthenticationOptions options = new() { CertificateChainPolicy = Certificates.Trust() };

        X509ChainPolicy? policy = Client(options).ChainPolicy;

        Assert.NotNull(policy);
        Assert.NotSame(options.CertificateChainPolicy, policy);
        Assert.Equal(X509ChainTrustMode.CustomRootTrust, policy.TrustMode);
    }

    [Fact]
    public void Every_client_option_of_this_runtime_is_decided_upon() => AssertDecided(
        typeof(SslClientAuthenticationOptions),
        "AllowRenegotiation", "AllowRsaPkcs1Padding", "AllowRsaPssPadding", "AllowTlsResume", "ApplicationProtocols",
        "CertificateChainPolicy", "CertificateRevocationCheckMode", "CipherSuitesPolicy", "ClientCertificateContext",
        "ClientCertificates", "EnabledSslProtocols", "EncryptionPolicy", "LocalCertificateSelectionCallback",
        "RemoteCertificateValidationCallback", "TargetHost");

    [Fact]
    public void Every_server_option_of_this_runtime_is_decided_upon() => AssertDecided(
        typeof(SslServerAuthenticationOptions),
        "AllowRenegotiation", "AllowRsaPkcs1Padding", "AllowRsaPssPadding", "AllowTlsResume", "ApplicationProtocols",
        "CertificateChainPolicy", "CertificateRevocationCheckMode", "CipherSuitesPolicy", "ClientCertificateRequired",
        "EnabledSslProtocols", "EncryptionPolicy", "RemoteCertificateValidationCallback", "ServerCertificate",
        "ServerCertificateContext", "ServerCertificateSelectionCallback");

    private static void AssertDecided(Type options, params string[] known)
    {
        string[] actual = [.. options.GetProperties(BindingFlags.Public | BindingFlags.Instance).Select(p => p.Name)];
        string[] unknown = [.. actual.Except(known)];

        Assert.True(
            unknown.Length == 0, $"decide what KtlsStream does with it: {options.Name}.{string.Join(", ", unknown)}");
        Assert.Empty(known.Except(actual));
    }

    private static HandshakeSettings Client(SslClientAuthenticationOptions options)
    {
        Assert.Equal(KtlsFallbackReason.None, ClientHandshakeOptions.TryCreate(options, null, true, out HandshakeSettings? settings));
        return settings!;
    }

    private static HandshakeSettings Server(SslServerAuthenticationOptions options)
    {
        Assert.Equal(KtlsFallbackReason.None, ServerHandshakeOptions.TryCreate(options, null, true, out HandshakeSettings? settings));
        return settings!;
    }

    private static SslServerAuthenticationOptions ServerOptions() => new() { ServerCertificateContext = Certificates.EcdsaContext };

    private static SslStreamCertificateContext WithTrust() => SslStreamCertificateContext.Create(
        Certificates.Ecdsa, null, offline: true, SslCertificateTrust.CreateForX509Collection([Certificates.Authority], sendTrustInHandshake: true));

    private static X509Certificate2 WithDsaKey()
    {
        using DSA dsa = DSA.Create(1024);
        CertificateRequest request = new(
            new X500DistinguishedName("CN=localhost"),
            new PublicKey(dsa),
            HashAlgorithmName.SHA256);
        using X509Certificate2 certificate = request.Create(
            Certificates.Authority.SubjectName,
            X509SignatureGenerator.CreateForECDsa(Certificates.Authority.GetECDsaPrivateKey()!),
            DateTimeOffset.UtcNow.AddDays(-1),
            DateTimeOffset.UtcNow.AddDays(1),
            [1]);
        return certificate.CopyWithPrivateKey(dsa);
    }
}

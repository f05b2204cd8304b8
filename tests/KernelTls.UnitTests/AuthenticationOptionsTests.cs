using System.Net.Security;
using System.Reflection;
using System.Security.Authentication;
using System.Security.Cryptography;
using System.Security.Cryptography.X509Certificates;
using KernelTls.Handshake;
using KernelTls.Offload;
using KernelTls.Interop;
using KernelTls.Tests;

namespace KernelTls.UnitTests;

#pragma warning disable SYSLIB0040 // NoEncryption and AllowNoEncryption are obsolete, but a caller can still pass them.
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
            ContextFlags.VerifyPeer | ContextFlags.ClientSessions | ContextFlags.ReleaseBuffers | ContextFlags.EnableKtls,
            settings.Context.Flags);
    }

    [Fact]
    public void Without_the_kernel_OpenSSL_is_not_asked_for_it()
    {
        ClientHandshakeOptions.TryCreate(new SslClientAuthenticationOptions(), default, KernelRequest.Nothing(KtlsFallbackReason.DisabledByMode), out HandshakeSettings? client);
        ServerHandshakeOptions.TryCreate(ServerOptions(), default, KernelRequest.Nothing(KtlsFallbackReason.DisabledByMode), out HandshakeSettings? server);

        Assert.False(client!.Context.Flags.HasFlag(ContextFlags.EnableKtls));
        Assert.False(server!.Context.Flags.HasFlag(ContextFlags.EnableKtls));
    }

    public static TheoryData<string, KtlsFallbackReason> ClientReasons => new()
    {
        { nameof(SslClientAuthenticationOptions.EncryptionPolicy), KtlsFallbackReason.EncryptionPolicy },
        { nameof(SslClientAuthenticationOptions.EnabledSslProtocols), KtlsFallbackReason.ProtocolNotOffloadable },
        { nameof(SslClientAuthenticationOptions.CipherSuitesPolicy), KtlsFallbackReason.CipherSuitesPolicy },
    };

    [Theory]
    [MemberData(nameof(ClientReasons))]
    public void Client_options_that_are_not_offloaded_say_which(string option, KtlsFallbackReason expected)
    {
        SslClientAuthenticationOptions options = new();
        switch (option)
        {
            case nameof(options.EncryptionPolicy): options.EncryptionPolicy = EncryptionPolicy.AllowNoEncryption; break;
            case nameof(options.EnabledSslProtocols): options.EnabledSslProtocols = SslProtocols.Tls11; break;
            case nameof(options.CipherSuitesPolicy):
                options.EnabledSslProtocols = SslProtocols.Tls12;
                options.CipherSuitesPolicy = new([TlsCipherSuite.TLS_AES_128_GCM_SHA256]);
                break;
            default: Assert.Fail($"no such option: {option}"); break;
        }

        Assert.Equal(expected, ClientHandshakeOptions.TryCreate(options, default, KernelRequest.Both, out HandshakeSettings? settings));
        Assert.Null(settings);
    }

    public static TheoryData<string, KtlsFallbackReason> ServerReasons => new()
    {
        { nameof(SslServerAuthenticationOptions.AllowRenegotiation), KtlsFallbackReason.Renegotiation },
        { nameof(SslServerAuthenticationOptions.EncryptionPolicy), KtlsFallbackReason.EncryptionPolicy },
        { nameof(SslServerAuthenticationOptions.EnabledSslProtocols), KtlsFallbackReason.ProtocolNotOffloadable },
        { nameof(SslServerAuthenticationOptions.CipherSuitesPolicy), KtlsFallbackReason.CipherSuitesPolicy },
    };

    [Theory]
    [MemberData(nameof(ServerReasons))]
    public void Server_options_that_are_not_offloaded_say_which(string option, KtlsFallbackReason expected)
    {
        SslServerAuthenticationOptions options = ServerOptions();
        switch (option)
        {
            case nameof(options.AllowRenegotiation): options.AllowRenegotiation = true; break;
            case nameof(options.EncryptionPolicy): options.EncryptionPolicy = EncryptionPolicy.NoEncryption; break;
            case nameof(options.EnabledSslProtocols): options.EnabledSslProtocols = SslProtocols.Tls11 | SslProtocols.Tls12; break;
            case nameof(options.CipherSuitesPolicy):
                options.EnabledSslProtocols = SslProtocols.Tls12;
                options.CipherSuitesPolicy = new([TlsCipherSuite.TLS_AES_128_GCM_SHA256]);
                break;
            default: Assert.Fail($"no such option: {option}"); break;
        }

        Assert.Equal(expected, ServerHandshakeOptions.TryCreate(options, default, KernelRequest.Both, out HandshakeSettings? settings));
        Assert.Null(settings);
    }

    [Fact]
    public void A_server_needs_a_certificate_with_a_key()
    {
        Assert.Throws<NotSupportedException>(() => Server(new SslServerAuthenticationOptions()));
        Assert.Throws<AuthenticationException>(() => Server(new SslServerAuthenticationOptions
        {
            ServerCertificate = X509CertificateLoader.LoadCertificate(Certificates.Ecdsa.RawData),
        }));
    }

    [Fact]
    public void A_key_that_TLS_cannot_use_is_refused_as_by_SslStream() =>
        Assert.Throws<NotSupportedException>(() => Server(new SslServerAuthenticationOptions { ServerCertificate = WithDsaKey() }));

    [Fact]
    public void A_trust_list_is_taken_from_the_certificate_s_context()
    {
        SslServerAuthenticationOptions options = new() { ServerCertificateContext = WithTrust() };

        CertificateTrust? trust = Server(options).Trust;

        Assert.NotNull(trust);
        Assert.True(trust.Announced);
        Assert.Equal(Certificates.Authority, Assert.Single(trust.Roots));
        Assert.Null(Server(ServerOptions()).Trust);
    }

    [Fact]
    public void A_server_certificate_chosen_by_callback_is_chosen_when_the_ClientHello_is_known()
    {
        SslServerAuthenticationOptions options = new()
        {
            ServerCertificateSelectionCallback = (_, name) => name == "known" ? Certificates.Ecdsa : null!,
        };

        HandshakeSettings settings = Server(options);

        Assert.True(settings.Context.Flags.HasFlag(ContextFlags.PauseAtClientHello));
        Assert.Null(settings.Certificate);
        Assert.Same(Certificates.Ecdsa, Choose("known")?.Certificate?.TargetCertificate);
        Assert.Null(Choose("unknown"));

        HandshakeSettings? Choose(string name)
        {
            ValueTask<HandshakeSettings?> chosen = settings.Selection!(new SslClientHelloInfo(name, SslProtocols.Tls13), CancellationToken.None);
            Assert.True(chosen.IsCompleted, "a synchronous callback must not make the handshake wait");
            return chosen.Result;
        }
    }

    [Fact]
    public void A_client_s_first_certificate_with_a_key_is_taken_before_the_handshake()
    {
        HandshakeSettings settings = Client(new SslClientAuthenticationOptions { ClientCertificates = [Certificates.Client] });

        Assert.Same(Certificates.Client, settings.Certificate?.TargetCertificate);
        Assert.Null(settings.CertificateSelector);
        Assert.False(settings.Context.Flags.HasFlag(ContextFlags.PauseAtCertificate));
    }

    [Fact]
    public void A_client_whose_callback_gives_none_is_asked_again_by_the_server()
    {
        HandshakeSettings settings = Client(new SslClientAuthenticationOptions
        {
            TargetHost = "localhost",
            LocalCertificateSelectionCallback = (_, _, _, _, _) => null!,
        });

        Assert.Null(settings.Certificate);
        Assert.NotNull(settings.CertificateSelector);
        Assert.True(settings.Context.Flags.HasFlag(ContextFlags.PauseAtCertificate | ContextFlags.NoTickets));
        Assert.False(settings.Resumes);
    }

    [Theory]
    [InlineData("localhost", true, true)]
    [InlineData("localhost", false, false)]
    [InlineData("127.0.0.1", true, false)]
    [InlineData("::1", true, false)]
    [InlineData("", true, false)]
    [InlineData(null, true, false)]
    public void A_client_resumes_by_name_where_it_may(string? host, bool allowed, bool expected)
    {
        HandshakeSettings settings = Client(new SslClientAuthenticationOptions { TargetHost = host, AllowTlsResume = allowed });

        Assert.Equal(expected, settings.Resumes);
        Assert.Equal(expected, settings.Context.Flags.HasFlag(ContextFlags.ClientSessions));
        Assert.Equal(!expected, settings.Context.Flags.HasFlag(ContextFlags.NoTickets));
    }

    [Fact]
    public void A_client_with_a_policy_of_suites_does_not_resume() =>
        Assert.False(Client(new SslClientAuthenticationOptions
        {
            TargetHost = "localhost",
            CipherSuitesPolicy = new([TlsCipherSuite.TLS_AES_128_GCM_SHA256]),
        }).Resumes);

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
    public void A_server_that_requires_a_certificate_refuses_its_absence_and_resumes()
    {
        SslServerAuthenticationOptions options = ServerOptions();
        options.ClientCertificateRequired = true;

        ContextFlags flags = Server(options).Context.Flags;

        Assert.Equal(ContextFlags.VerifyPeer | ContextFlags.RequirePeer, flags & (ContextFlags.VerifyPeer | ContextFlags.RequirePeer | ContextFlags.NoTickets));
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
    public void A_callback_of_the_constructor_s_is_used_and_two_are_a_contradiction()
    {
        RemoteCertificateValidationCallback own = (_, _, _, _) => true;
        StreamCallbacks stream = new(this, own, null);
        SslClientAuthenticationOptions other = new() { RemoteCertificateValidationCallback = (_, _, _, _) => false };

        ClientHandshakeOptions.TryCreate(new SslClientAuthenticationOptions(), stream, KernelRequest.Both, out HandshakeSettings? settings);

        Assert.Same(own, settings!.ValidationCallback);
        Assert.Throws<InvalidOperationException>(() => ClientHandshakeOptions.TryCreate(other, stream, KernelRequest.Both, out _));
        other.RemoteCertificateValidationCallback = own;
        ClientHandshakeOptions.TryCreate(other, stream, KernelRequest.Both, out settings);
        Assert.Same(own, settings!.ValidationCallback);
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
        Assert.Equal(KtlsFallbackReason.None, ClientHandshakeOptions.TryCreate(options, default, KernelRequest.Both, out HandshakeSettings? settings));
        return settings!;
    }

    private static HandshakeSettings Server(SslServerAuthenticationOptions options)
    {
        Assert.Equal(KtlsFallbackReason.None, ServerHandshakeOptions.TryCreate(options, default, KernelRequest.Both, out HandshakeSettings? settings));
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

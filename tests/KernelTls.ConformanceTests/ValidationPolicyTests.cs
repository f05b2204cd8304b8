using System.Net;
using System.Net.Security;
using System.Net.Sockets;
using System.Security.Authentication;
using System.Security.Cryptography;
using System.Security.Cryptography.X509Certificates;
using KernelTls.Tests;

namespace KernelTls.ConformanceTests;

/// <summary>
/// Compares the whole policy by which a peer is validated, as its callback sees it, with that of the running SslStream.
/// </summary>
/// <remarks>
/// <see cref="ServerDownloadTests"/> runs these tests again, with the runtime's switch that lets a server download
/// certificates.
/// </remarks>
public class ValidationPolicyTests
{
    private static readonly DateTime s_yesterday = DateTime.Now.AddDays(-1);

    private static readonly Dictionary<string, Situation> s_situations = new()
    {
        ["nothing given"] = new(),
        ["no intermediate"] = new() { PeerKind = "good" },
        ["online revocation"] = new() { Revocation = X509RevocationMode.Online },
        ["offline revocation"] = new() { Revocation = X509RevocationMode.Offline },
        ["a policy"] = new() { Policy = Certificates.Trust },
        ["a policy, not of the options' revocation mode"] = new() { Policy = Certificates.Trust, Revocation = X509RevocationMode.Offline },
        ["a policy that downloads"] = new() { Policy = () => new X509ChainPolicy { UrlRetrievalTimeout = TimeSpan.FromSeconds(3) } },
        ["a policy with certificates, usages and a time"] = new()
        {
            Policy = () => new X509ChainPolicy
            {
                ExtraStore = { Certificates.OtherAuthority, Certificates.Intermediate },
                ApplicationPolicy = { new Oid("1.3.6.1.5.5.7.3.3") },
                CertificatePolicy = { new Oid("1.2.3.4") },
                RevocationFlag = X509RevocationFlag.EntireChain,
                RevocationMode = X509RevocationMode.NoCheck,
                VerificationFlags = X509VerificationFlags.IgnoreNotTimeValid,
                VerificationTime = s_yesterday,
                DisableCertificateDownloads = true,
            },
        },
        ["trust in a list"] = new() { Trust = () => SslCertificateTrust.CreateForX509Collection([Certificates.OtherAuthority, Certificates.Authority]) },
        ["trust in a store"] = new() { Trust = TrustInStore },
        ["trust in a list, and a policy"] = new()
        {
            Trust = () => SslCertificateTrust.CreateForX509Collection([Certificates.OtherAuthority]),
            Policy = Certificates.Trust,
        },
        ["without options"] = new() { ChecksRevocation = false },
        ["without options, checking revocation"] = new() { ChecksRevocation = true },
        ["options chosen by a callback"] = new() { IsChosen = true },
        ["options chosen by a callback, a policy"] = new() { IsChosen = true, Policy = Certificates.Trust },
        ["resumed"] = new() { IsResumed = true },
        ["resumed, a policy"] = new() { IsResumed = true, Policy = Certificates.Trust },
        ["after the handshake"] = new() { IsLate = true },
        ["after the handshake, a policy"] = new() { IsLate = true, Policy = Certificates.Trust },
    };

    private static int s_hosts;

    public static TheoryData<TlsMode, SslProtocols, string> AtClient =>
        Modes.AllWith<string>(s_situations.Where(s => !s.Value.IsChosen && !s.Value.IsLate).Select(s => s.Key));

    /// <summary>Gets all but those that no server of SslStream has: it resumes no session of a client with a certificate.</summary>
    public static TheoryData<TlsMode, SslProtocols, string> AtServer =>
        [.. Modes.AllWith<string>(s_situations.Keys).Where(r =>
            !s_situations[r.Data.Item3].IsResumed && (!s_situations[r.Data.Item3].IsLate || r.Data.Item2 == SslProtocols.Tls13))];

    public static TheoryData<TlsMode, SslProtocols, bool> Servers => Modes.AllWith(false, true);

    [Theory]
    [MemberData(nameof(AtClient))]
    public Task A_client_validates_by_the_policy_of_SslStream(TlsMode mode, SslProtocols version, string situation) =>
        SideBySide.RunAsync(mode, each => DescribeAsync(each, version, s_situations[situation], atServer: false));

    [Theory]
    [MemberData(nameof(AtServer))]
    public Task A_server_validates_by_the_policy_of_SslStream(TlsMode mode, SslProtocols version, string situation) =>
        SideBySide.RunAsync(mode, each => DescribeAsync(each, version, s_situations[situation], atServer: true));

    /// <summary>
    /// A client may send a certificate that names any address as the place of its issuer. A server that asks that address is
    /// sent there by strangers.
    /// </summary>
    [Theory]
    [MemberData(nameof(Servers))]
    public async Task A_server_asks_the_addresses_in_a_client_s_certificate_only_where_SslStream_does(
        TlsMode mode, SslProtocols version, bool withPolicy)
    {
        async Task<bool> IsAskedAsync(TlsMode each)
        {
            using TcpListener issuer = new(IPAddress.Loopback, 0);
            issuer.Start();
            Task<int> questions = RefuseAsync(issuer);
            using X509Certificate2 certificate = NamingIssuer(((IPEndPoint)issuer.LocalEndpoint).Port);
            await using Meeting meeting = await new Meeting(TlsMode.Stock, each, version)
            {
                ClientOptions = c => c.ClientCertificateContext = SslStreamCertificateContext.Create(certificate, null, offline: true),
                ServerOptions = s =>
                {
                    s.ClientCertificateRequired = true;
                    s.CertificateChainPolicy = withPolicy ? s.CertificateChainPolicy : null;
                },
                ServerValidation = (_, _, _, _) => true,
            }.SucceedAsync();
            issuer.Stop();
            return await questions.InTime("the place of the issuer to close") > 0;
        }

        bool isAsked = await SideBySide.RunAsync(mode, IsAskedAsync);
        bool byDefault = Environment.Version.Major < 11 || ServerDownloadTests.IsSwitchedOn;
        Assert.Equal(!withPolicy && byDefault, isAsked);
    }

    private static async Task<string> DescribeAsync(TlsMode mode, SslProtocols version, Situation situation, bool atServer)
    {
        List<string> policies = [];
        RemoteCertificateValidationCallback observe = (_, certificate, chain, _) =>
        {
            if (certificate is not null)
            {
                policies.Add(PolicyDescription.Of(chain!.ChainPolicy));
            }

            return true;
        };
        RemoteCertificateValidationCallback accept = (_, _, _, _) => true;
        string host = $"policy{Interlocked.Increment(ref s_hosts)}.test";
        SslStreamCertificateContext own = situation.ContextOf(atServer ? Certificates.Ecdsa : Certificates.Client);
        SslStreamCertificateContext peer = Certificates.KindContext(situation.PeerKind);
        for (int i = 0; i < (situation.IsResumed ? 2 : 1); i++)
        {
            bool both = situation.IsResumed;
            await using Meeting meeting = await new Meeting(
                atServer && !both ? TlsMode.Stock : mode, atServer || both ? mode : TlsMode.Stock, version)
            {
                ClientOptions = c =>
                {
                    c.TargetHost = host;
                    c.AllowTlsResume = situation.IsResumed;
                    c.ClientCertificateContext = atServer ? peer : own;
                    c.CertificateChainPolicy = atServer ? c.CertificateChainPolicy : situation.Policy?.Invoke();
                    c.CertificateRevocationCheckMode = situation.Revocation;
                },
                ClientHandshake = !atServer && situation.ChecksRevocation is { } checksServer
                    ? s => s.AuthenticateAsClientAsync(host, null, version, checksServer)
                    : null,
                ClientValidation = atServer ? accept : observe,
                ServerOptions = Configure,
                ServerHandshake = !atServer ? null
                    : situation.ChecksRevocation is { } checks ? s => s.AuthenticateAsServerAsync(Certificates.Ecdsa, true, version, checks)
                    : situation.IsChosen ? s => s.HandshakeAsServerAsync((_, _, _, _) => ValueTask.FromResult(Chosen()), null)
                    : null,
                ServerValidation = situation.IsChosen ? null : atServer ? observe : accept,
            }.SucceedAsync();
            if (situation.IsLate)
            {
                await NegotiateAsync(meeting);
            }

            Assert.Equal(i + 1, policies.Count);
            if (Modes.OnOpenSsl.Contains(mode))
            {
                Assert.Equal(i > 0, ((KtlsStream)(atServer ? meeting.Server : meeting.Client)).IsResumed);
            }
        }

        return policies[^1];

        SslServerAuthenticationOptions Chosen()
        {
            SslServerAuthenticationOptions options = Handshakes.ServerOptions(version);
            options.RemoteCertificateValidationCallback = observe;
            Configure(options);
            return options;
        }

        void Configure(SslServerAuthenticationOptions s)
        {
            s.AllowTlsResume = situation.IsResumed;
            s.ServerCertificateContext = atServer ? own : peer;
            s.ClientCertificateRequired = !situation.IsLate && !situation.IsResumed;
            s.CertificateChainPolicy = atServer ? situation.Policy?.Invoke() : s.CertificateChainPolicy;
            s.CertificateRevocationCheckMode = situation.Revocation;
        }
    }

    private static async Task NegotiateAsync(Meeting meeting)
    {
        Task<int> reading = meeting.Client.ReadAsync(new byte[1]).AsTask();
#pragma warning disable CA1416 // Linux
        await meeting.Server.NegotiateClientCertificateAsync(CancellationToken.None).InTime("the client's certificate");
#pragma warning restore CA1416
        await meeting.Server.WriteAsync(new byte[1]).InTime();
        Assert.Equal(1, await reading.InTime("data behind the request"));
    }

    private static SslCertificateTrust TrustInStore()
    {
        X509Store store = new(StoreName.CertificateAuthority, StoreLocation.LocalMachine);
        store.Open(OpenFlags.ReadOnly);
        return SslCertificateTrust.CreateForX509Store(store);
    }

    /// <summary>Creates a client's certificate whose issuer is unknown, and said to be available at this port.</summary>
    private static X509Certificate2 NamingIssuer(int port)
    {
        using ECDsa key = ECDsa.Create(ECCurve.NamedCurves.nistP256);
        CertificateRequest request = new("CN=a stranger", key, HashAlgorithmName.SHA256);
        request.CertificateExtensions.Add(
            new X509AuthorityInformationAccessExtension(null, [$"http://127.0.0.1:{port}/{Guid.NewGuid():N}.crt"]));
        using X509Certificate2 certificate = request.Create(
            new X500DistinguishedName("CN=an authority of the stranger's"),
            X509SignatureGenerator.CreateForECDsa(key),
            DateTimeOffset.UtcNow.AddDays(-1),
            DateTimeOffset.UtcNow.AddDays(30),
            RandomNumberGenerator.GetBytes(8));
        return X509CertificateLoader.LoadPkcs12(certificate.CopyWithPrivateKey(key).Export(X509ContentType.Pfx), null);
    }

    /// <summary>Closes each connection, until the listener stops. Returns how many there were.</summary>
    private static async Task<int> RefuseAsync(TcpListener listener)
    {
        for (int count = 0; ; count++)
        {
            try
            {
                (await listener.AcceptSocketAsync()).Dispose();
            }
            catch (Exception e) when (e is SocketException or InvalidOperationException)
            {
                // It has stopped, during the wait or before.
                return count;
            }
        }
    }

    private sealed record Situation
    {
        public Func<X509ChainPolicy>? Policy { get; init; }

        public X509RevocationMode Revocation { get; init; } = X509RevocationMode.NoCheck;

        public Func<SslCertificateTrust>? Trust { get; init; }

        public string PeerKind { get; init; } = "chained";

        /// <summary>Gets the argument of the overload without options, or null for the overload with options.</summary>
        public bool? ChecksRevocation { get; init; }

        public bool IsChosen { get; init; }

        public bool IsResumed { get; init; }

        /// <summary>Gets a value that indicates whether the server asks for the certificate after the handshake.</summary>
        public bool IsLate { get; init; }

        public SslStreamCertificateContext ContextOf(X509Certificate2 certificate) =>
            SslStreamCertificateContext.Create(certificate, null, offline: true, Trust?.Invoke());
    }
}

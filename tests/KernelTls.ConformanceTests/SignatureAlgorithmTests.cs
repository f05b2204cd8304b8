using System.Net;
using System.Net.Security;
using System.Net.Sockets;
using System.Security.Authentication;
using System.Security.Cryptography;
using System.Security.Cryptography.X509Certificates;
using System.Text.RegularExpressions;
using KernelTls.Tests;

namespace KernelTls.ConformanceTests;

#pragma warning disable SYSLIB5006 // ML-DSA is experimental in .NET.
#pragma warning disable CA1416 // Linux

/// <summary>
/// Tests that a forbidden RSA padding removes from the signature algorithms what SslStream removes, and nothing else.
/// </summary>
/// <remarks><see cref="ClientHelloTests"/> compares what a client offers, <see cref="NegotiationTests"/> what passes.</remarks>
public class SignatureAlgorithmTests
{
    private static readonly (bool Pss, bool Pkcs1)[] s_paddings = [(true, true), (true, false), (false, true), (false, false)];

    public static TheoryData<TlsMode, SslProtocols> All => Modes.All;

    /// <summary>Gets the keys that have nothing to do with RSA, as far as this OpenSSL has them.</summary>
    public static TheoryData<TlsMode, SslProtocols, string> Keys =>
        Modes.AllWith<string>(["brainpoolP256r1", .. MLDsa.IsSupported ? ["ML-DSA"] : Array.Empty<string>()]);

    [Theory]
    [MemberData(nameof(All))]
    public async Task A_server_requests_the_algorithms_that_SslStream_requests(TlsMode mode, SslProtocols version)
    {
        // Where SslStream refuses the limits, NegotiationTests show that a KtlsStream does as well.
        foreach ((bool pss, bool pkcs1) in RsaPaddings.CanBeLimited ? s_paddings : [(true, true)])
        {
            string requested = await SideBySide.RunAsync(mode, each => RequestedAsync(each, version, pss, pkcs1), $"PSS: {pss}, PKCS #1: {pkcs1}");
            // OpenSSL 4 prints the names of RFC 8446.
            Assert.Matches("ECDSA\\+SHA256|ecdsa_secp256r1_sha256", requested);
            Assert.Equal(pkcs1, Regex.IsMatch(requested, "RSA\\+SHA256|rsa_pkcs1_sha256"));
        }
    }

    [Theory]
    [MemberData(nameof(Keys))]
    public async Task A_certificate_without_RSA_passes_as_on_SslStream(TlsMode mode, SslProtocols version, string kind)
    {
        using X509Certificate2 certificate = Make(kind);
        SslStreamCertificateContext context = Certificates.Context(certificate);
        foreach ((bool pss, bool pkcs1) in s_paddings)
        {
            foreach (bool atServer in new[] { false, true })
            {
                foreach (bool mutual in new[] { false, true })
                {
                    await SideBySide.RunAsync(mode, async each =>
                    {
                        await using Meeting meeting = await new Meeting(atServer ? TlsMode.Stock : each, atServer ? each : TlsMode.Stock, version)
                        {
                            AllowedFallback = RsaPaddings.CanBeLimited || (pss && pkcs1) ? KtlsFallbackReason.None : KtlsFallbackReason.OpenSslRefusedOptions,
                            ClientValidation = (_, _, _, _) => true,
                            ServerValidation = (_, _, _, _) => true,
                            ClientOptions = c =>
                            {
                                c.ClientCertificateContext = mutual ? context : null;
                                (c.AllowRsaPssPadding, c.AllowRsaPkcs1Padding) = atServer ? (true, true) : (pss, pkcs1);
                            },
                            ServerOptions = s =>
                            {
                                s.ClientCertificateRequired = mutual;
                                s.ServerCertificateContext = mutual ? Certificates.EcdsaContext : context;
                                (s.AllowRsaPssPadding, s.AllowRsaPkcs1Padding) = atServer ? (pss, pkcs1) : (true, true);
                            },
                        }.RunAsync();
                        return $"{meeting.ClientEnding}, {meeting.ServerEnding}";
                    }, $"PSS: {pss}, PKCS #1: {pkcs1}, at server: {atServer}, mutual: {mutual}");
                }
            }
        }
    }

    private static X509Certificate2 Make(string kind)
    {
        DateTimeOffset from = DateTimeOffset.UtcNow.AddDays(-1);
        DateTimeOffset to = DateTimeOffset.UtcNow.AddDays(5);
        X500DistinguishedName name = new("CN=localhost");
        if (kind == "ML-DSA")
        {
            using MLDsa key = MLDsa.GenerateKey(MLDsaAlgorithm.MLDsa44);
            return new CertificateRequest(name, key).CreateSelfSigned(from, to);
        }

        using ECDsa curve = ECDsa.Create(ECCurve.NamedCurves.brainpoolP256r1);
        return new CertificateRequest(name, curve, HashAlgorithmName.SHA256).CreateSelfSigned(from, to);
    }

    /// <summary>Returns the algorithms in the server's CertificateRequest, as openssl s_client prints them.</summary>
    private static async Task<string> RequestedAsync(TlsMode mode, SslProtocols version, bool pss, bool pkcs1)
    {
        const string prefix = "Requested Signature Algorithms: ";
        using TemporaryDirectory directory = new();
        using TcpListener listener = new(IPAddress.Loopback, 0);
        listener.Start();
        using ExternalProgram client = OpenSslProgram.Connect(((IPEndPoint)listener.LocalEndpoint).Port, directory, version);
        Socket socket = await listener.AcceptSocketAsync().InTime("s_client to connect");
        await using SslStream server = Modes.Create(mode, new NetworkStream(socket, ownsSocket: true));
        SslServerAuthenticationOptions options = Handshakes.ServerOptions(version);
        options.ClientCertificateRequired = true;
        options.RemoteCertificateValidationCallback = (_, _, _, _) => true;
        (options.AllowRsaPssPadding, options.AllowRsaPkcs1Padding) = (pss, pkcs1);
        await server.HandshakeAsServerAsync(options).InTime($"a handshake with s_client, which says: {client.Errors}");
        Modes.AssertIn(mode, server);
        await server.ShutdownAsync().InTime("close_notify to s_client");
        _ = await server.ReadAsync(new byte[1]).InTime("s_client's close_notify");
        await server.DisposeAsync();
        string said = await client.SucceedAsync();
        return Assert.Single(said.Split('\n'), l => l.StartsWith(prefix, StringComparison.Ordinal));
    }
}

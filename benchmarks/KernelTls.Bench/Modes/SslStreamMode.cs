using System.Net.Security;
using System.Net.Sockets;
using System.Security.Authentication;
using Microsoft.AspNetCore.Hosting;
using Microsoft.AspNetCore.Server.Kestrel.Core;

namespace KernelTls.Bench.Modes;

/// <summary>Represents the stock stream, the reference for the ratios of all other modes.</summary>
internal class SslStreamMode : Mode
{
    private readonly BenchCertificates _certificates;
    private readonly bool _resume;
    private readonly SslClientAuthenticationOptions _client;
    private readonly SslServerAuthenticationOptions _server;

    /// <param name="certificates">The server's certificate and the client's trust.</param>
    /// <param name="resume">Whether both ends resume sessions.</param>
    public SslStreamMode(BenchCertificates certificates, bool resume)
    {
        _certificates = certificates;
        _resume = resume;

        // Do not set a CipherSuitesPolicy, because it would prevent the stock stream from resuming sessions. Verify
        // checks for the default cipher suite.
        _client = new SslClientAuthenticationOptions
        {
            TargetHost = BenchCertificates.Host,
            EnabledSslProtocols = SslProtocols.Tls13,
            CertificateChainPolicy = certificates.CreateTrust(),
            AllowTlsResume = resume,
            ClientCertificateContext = certificates.ClientContext,
        };
        _server = new SslServerAuthenticationOptions
        {
            ServerCertificateContext = certificates.ServerContext,
            EnabledSslProtocols = SslProtocols.Tls13,
            AllowTlsResume = resume,
            ClientCertificateRequired = certificates.ClientContext is not null,
            CertificateChainPolicy = certificates.ClientContext is null ? null : certificates.CreateTrust(),
        };
    }

    public override string Name => "sslstream";

    public override async Task<Stream> ConnectAsync(Socket socket)
    {
        SslStream stream = Create(new NetworkStream(socket, ownsSocket: true), isServer: false);
        await stream.HandshakeAsClientAsync(_client);
        return stream;
    }

    public override async Task<Stream> AcceptAsync(Socket socket)
    {
        SslStream stream = Create(new NetworkStream(socket, ownsSocket: true), isServer: true);
        await stream.HandshakeAsServerAsync(_server);
        return stream;
    }

    public override Task EndSendingAsync(Stream stream) => ((SslStream)stream).ShutdownAsync();

    public override void Verify(Stream stream, Socket socket)
    {
        SslStream ssl = (SslStream)stream;
        if (ssl.SslProtocol != SslProtocols.Tls13 || ssl.NegotiatedCipherSuite != TlsCipherSuite.TLS_AES_256_GCM_SHA384)
        {
            throw new BenchFailedException($"{Name} negotiated {ssl.SslProtocol} {ssl.NegotiatedCipherSuite}");
        }

        if (ssl.IsMutuallyAuthenticated != _certificates.ClientContext is not null)
        {
            throw new BenchFailedException($"{Name}: IsMutuallyAuthenticated is {ssl.IsMutuallyAuthenticated}");
        }
    }

    public override SocketsHttpHandler CreateHandler() => new()
    {
        SslOptions = new SslClientAuthenticationOptions
        {
            EnabledSslProtocols = SslProtocols.Tls13,
            CertificateChainPolicy = _certificates.CreateTrust(),
            AllowTlsResume = _resume,
        },
    };

    public override void ConfigureEndpoint(ListenOptions endpoint) => endpoint.UseHttps(https =>
    {
        https.ServerCertificate = _certificates.Server;
        https.SslProtocols = SslProtocols.Tls13;
        https.OnAuthenticate = (_, options) => options.AllowTlsResume = _resume;
    });

    protected virtual SslStream Create(NetworkStream transport, bool isServer) => new(transport);
}

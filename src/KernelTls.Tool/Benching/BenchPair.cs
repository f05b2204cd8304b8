using System.Net;
using System.Net.Security;
using System.Net.Sockets;
using System.Security.Authentication;
using System.Security.Cryptography.X509Certificates;

namespace KernelTls.Tool.Benching;

/// <summary>Represents the two ends of a TLS 1.3 connection over loopback, in this process.</summary>
internal sealed class BenchPair : IAsyncDisposable
{
    private BenchPair(SslStream client, SslStream server) => (Client, Server) = (client, server);

    public SslStream Client { get; }

    public SslStream Server { get; }

    /// <summary>Connects and performs a full handshake. No session is resumed.</summary>
    public static async Task<BenchPair> ConnectAsync(
        BenchMode mode, Socket listener, SslStreamCertificateContext certificate, CancellationToken cancellationToken)
    {
        Socket near = new(AddressFamily.InterNetwork, SocketType.Stream, ProtocolType.Tcp) { NoDelay = true };
        await near.ConnectAsync(listener.LocalEndPoint!, cancellationToken);
        Socket far = await listener.AcceptAsync(cancellationToken);
        far.NoDelay = true;
        BenchPair pair = new(NewStream(mode, near), NewStream(mode, far));
        SslClientAuthenticationOptions client = new()
        {
            TargetHost = "localhost",
            AllowTlsResume = false,
            EnabledSslProtocols = SslProtocols.Tls13,
            CertificateChainPolicy = new X509ChainPolicy
            {
                TrustMode = X509ChainTrustMode.CustomRootTrust,
                RevocationMode = X509RevocationMode.NoCheck,
                CustomTrustStore = { certificate.TargetCertificate },
            },
        };
        SslServerAuthenticationOptions server = new()
        {
            ServerCertificateContext = certificate,
            AllowTlsResume = false,
            EnabledSslProtocols = SslProtocols.Tls13,
        };
        await Task.WhenAll(pair.Client.HandshakeAsClientAsync(client, cancellationToken), pair.Server.HandshakeAsServerAsync(server, cancellationToken));
        return pair;
    }

    /// <summary>Returns a socket that accepts the pairs' connections.</summary>
    public static Socket Listen()
    {
        Socket listener = new(AddressFamily.InterNetwork, SocketType.Stream, ProtocolType.Tcp);
        listener.Bind(new IPEndPoint(IPAddress.Loopback, 0));
        listener.Listen();
        return listener;
    }

    public async ValueTask DisposeAsync()
    {
        await Client.DisposeAsync();
        await Server.DisposeAsync();
    }

    private static SslStream NewStream(BenchMode mode, Socket socket)
    {
        NetworkStream inner = new(socket, ownsSocket: true);
        return mode switch
        {
            BenchMode.SslStream => new SslStream(inner),
            BenchMode.Kernel => new KtlsStream(inner, false, new KtlsOptions { Mode = KtlsMode.Preferred }),
            _ => new KtlsStream(inner, false, new KtlsOptions { Mode = KtlsMode.Disabled, Fallback = KtlsFallback.OpenSsl }),
        };
    }
}

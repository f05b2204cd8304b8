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
        ExpectMode(mode, pair.Client);
        ExpectMode(mode, pair.Server);
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

    /// <summary>Returns the options of the KtlsStreams of a mode.</summary>
    public static KtlsOptions Options(BenchMode mode) => mode == BenchMode.Kernel
        ? new KtlsOptions { Mode = KtlsMode.Preferred }
        : new KtlsOptions { Mode = KtlsMode.Disabled, Fallback = KtlsFallback.OpenSsl };

    /// <summary>Ends the command if a stream became another one than the figures would say.</summary>
    private static void ExpectMode(BenchMode mode, SslStream stream)
    {
        if (stream is not KtlsStream { Offload: var offload })
        {
            return;
        }

        bool kernel = offload.Send is KtlsDataPath.Kernel or KtlsDataPath.Hardware || offload.Receive is KtlsDataPath.Kernel or KtlsDataPath.Hardware;
        if (offload.Send == KtlsDataPath.Managed || (mode == BenchMode.Kernel) != kernel)
        {
            throw new ToolFailedException(
                ExitCode.Failed, $"a connection to measure as {mode} became {offload}. {Advice.Named(offload.SendFallbackReason)}");
        }
    }

    private static SslStream NewStream(BenchMode mode, Socket socket)
    {
        NetworkStream inner = new(socket, ownsSocket: true);
        return mode == BenchMode.SslStream ? new SslStream(inner) : new KtlsStream(inner, false, Options(mode));
    }
}

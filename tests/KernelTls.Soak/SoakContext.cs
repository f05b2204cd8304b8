using System.Net;
using System.Net.Security;
using System.Net.Sockets;
using System.Security.Authentication;
using System.Security.Cryptography.X509Certificates;

namespace KernelTls.Soak;

/// <summary>Contains what clients and servers share.</summary>
internal sealed class SoakContext(SoakOptions options) : IDisposable
{
    public SoakOptions Options { get; } = options;

    public Findings Findings { get; } = new();

    public Tally Tally { get; } = new();

    public Pacer Pacer { get; } = new(options.Cores);

    public Sabotage Sabotage { get; } = new(options.Fault);

    public X509Certificate2 Certificate { get; } = SelfSigned.Create();

    /// <summary>Gets or sets the address of the HTTP server.</summary>
    public Uri Web { get; set; } = null!;

    /// <summary>Gets or sets the address of the server of bare streams.</summary>
    public IPEndPoint Streams { get; set; } = null!;

    public SslClientAuthenticationOptions CreateClientOptions(SslProtocols protocols = SslProtocols.None) => new()
    {
        TargetHost = "localhost",
        EnabledSslProtocols = protocols,
        CertificateChainPolicy = CreatePolicy(),
    };

    public X509ChainPolicy CreatePolicy() => new()
    {
        TrustMode = X509ChainTrustMode.CustomRootTrust,
        CustomTrustStore = { Certificate },
        RevocationMode = X509RevocationMode.NoCheck,
    };

    public static async Task<Socket> ConnectAsync(EndPoint to, CancellationToken cancellationToken)
    {
        Socket socket = new(AddressFamily.InterNetwork, SocketType.Stream, ProtocolType.Tcp) { NoDelay = true };
        try
        {
            await socket.ConnectAsync(to, cancellationToken);
            return socket;
        }
        catch
        {
            socket.Dispose();
            throw;
        }
    }

    public void Dispose() => Certificate.Dispose();
}

using System.Net.Security;
using System.Net.Sockets;
using System.Security.Authentication;
using Microsoft.AspNetCore.Server.Kestrel.Core;

namespace KernelTls.Bench.Modes;

/// <summary>
/// Represents the TlsSocketSession of .NET 11, which runs OpenSSL on the socket, at both ends. HttpClient and Kestrel
/// cannot use it.
/// </summary>
internal sealed class TlsSessionMode : Mode
{
    private readonly object _client;
    private readonly object _server;

    /// <exception cref="BenchFailedException">The runtime does not have TlsSocketSession.</exception>
    public TlsSessionMode(BenchCertificates certificates, bool resume)
    {
        if (!SocketSession.IsSupported)
        {
            throw new BenchFailedException($"{ModeTable.TlsSession}: .NET {Environment.Version} has no TlsSocketSession; .NET 11 has (--runtime 11)");
        }

        _client = SocketSession.CreateContext(new SslClientAuthenticationOptions
        {
            TargetHost = BenchCertificates.Host,
            EnabledSslProtocols = SslProtocols.Tls13,
            CertificateChainPolicy = certificates.CreateTrust(),
            AllowTlsResume = resume,
        });
        _server = SocketSession.CreateContext(new SslServerAuthenticationOptions
        {
            ServerCertificateContext = certificates.ServerContext,
            EnabledSslProtocols = SslProtocols.Tls13,
            AllowTlsResume = resume,
        });
    }

    public override string Name => ModeTable.TlsSession;

    public override Task<Stream> ConnectAsync(Socket socket) => SocketSessionStream.ShakeHandsAsync(socket, _client);

    public override Task<Stream> AcceptAsync(Socket socket) => SocketSessionStream.ShakeHandsAsync(socket, _server);

    public override Task EndSendingAsync(Stream stream)
    {
        ((SocketSessionStream)stream).EndSending();
        return Task.CompletedTask;
    }

    public override SocketsHttpHandler CreateHandler() => throw new NotSupportedException();

    public override void ConfigureEndpoint(ListenOptions endpoint) => throw new NotSupportedException();

    public override void Verify(Stream stream, Socket socket)
    {
        TlsCipherSuite cipher = ((SocketSessionStream)stream).CipherSuite;
        if (cipher != TlsCipherSuite.TLS_AES_256_GCM_SHA384)
        {
            throw new BenchFailedException($"{Name} negotiated {cipher}");
        }
    }
}

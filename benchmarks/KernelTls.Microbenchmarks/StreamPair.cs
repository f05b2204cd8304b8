using System.Net;
using System.Net.Security;
using System.Net.Sockets;
using System.Security.Authentication;
using KernelTls.Bench;

namespace KernelTls.Microbenchmarks;

/// <summary>Represents both ends of connections over loopback, which are opened one after another.</summary>
internal sealed class StreamPair : IDisposable
{
    private readonly StreamMode _mode;
    private readonly Socket _listener = new(AddressFamily.InterNetwork, SocketType.Stream, ProtocolType.Tcp);
    private readonly SslClientAuthenticationOptions _client;
    private readonly SslServerAuthenticationOptions _server;

    public StreamPair(StreamMode mode, bool resumes)
    {
        _mode = mode;
        _listener.Bind(new IPEndPoint(IPAddress.Loopback, 0));
        _listener.Listen();
        BenchCertificates certificates = new();
        _client = new SslClientAuthenticationOptions
        {
            TargetHost = BenchCertificates.Host,
            EnabledSslProtocols = SslProtocols.Tls13,
            CertificateChainPolicy = certificates.CreateTrust(),
            AllowTlsResume = resumes,
        };
        _server = new SslServerAuthenticationOptions
        {
            ServerCertificateContext = certificates.ServerContext,
            EnabledSslProtocols = SslProtocols.Tls13,
            AllowTlsResume = resumes,
        };
    }

    public async Task<(SslStream Client, SslStream Server)> ConnectAsync()
    {
        Socket client = new(AddressFamily.InterNetwork, SocketType.Stream, ProtocolType.Tcp) { NoDelay = true };
        Task<Socket> accepting = _listener.AcceptAsync();
        await client.ConnectAsync(_listener.LocalEndPoint!);
        Socket server = await accepting;
        server.NoDelay = true;
        SslStream ofClient = _mode.Create(new NetworkStream(client, ownsSocket: true));
        SslStream ofServer = _mode.Create(new NetworkStream(server, ownsSocket: true));
        await Task.WhenAll(ofClient.HandshakeAsClientAsync(_client), ofServer.HandshakeAsServerAsync(_server));
        return (ofClient, ofServer);
    }

    public void Dispose() => _listener.Dispose();
}

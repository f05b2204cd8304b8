using System.Net.Security;
using System.Net.Sockets;
using KernelTls.Bench.Poc;
using Microsoft.AspNetCore.Hosting;
using Microsoft.AspNetCore.Server.Kestrel.Core;

namespace KernelTls.Bench.Modes;

/// <summary>Represents the closed proof of concept, which this library has to beat.</summary>
internal sealed class PocMode : Mode
{
    private readonly PocContext _context;
    private readonly SslStreamMode _stock;

    public PocMode(BenchCertificates certificates, bool resume)
    {
        _context = new PocContext(certificates, resume);
        _stock = new SslStreamMode(certificates, resume);
    }

    public override string Name => ModeTable.Opponent;

    public override int KernelEnds => 2;

    /// <summary>Gets one kernel TLS end, because the proof of concept had no server.</summary>
    public override int HttpKernelEnds => 1;

    /// <summary>
    /// Gets the scheme http, because the connect callback provides TLS. For https, HttpClient would add a second layer
    /// of TLS.
    /// </summary>
    public override string Scheme => Uri.UriSchemeHttp;

    public override bool ResumesHttp => false;

    public override Task<Stream> ConnectAsync(Socket socket) => _context.ConnectAsync(socket);

    public override Task<Stream> AcceptAsync(Socket socket) => _context.AcceptAsync(socket);

    public override Task EndSendingAsync(Stream stream)
    {
        PocStream poc = (PocStream)stream;
        _context.KeepSession(poc);
        poc.EndSending();
        return Task.CompletedTask;
    }

    public override SocketsHttpHandler CreateHandler() => new()
    {
        ConnectCallback = async (context, cancellationToken) =>
        {
            Socket socket = new(SocketType.Stream, ProtocolType.Tcp) { NoDelay = true };
            await socket.ConnectAsync(context.DnsEndPoint, cancellationToken);
            return await _context.ConnectAsync(socket, isHttp: true);
        },
    };

    /// <summary>
    /// Allows requests with another scheme. HTTP/2 requests contain their scheme, and the client's scheme is http.
    /// </summary>
    public override void ConfigureServer(IWebHostBuilder server) =>
        server.ConfigureKestrel(options => options.AllowAlternateSchemes = true);

    public override void ConfigureEndpoint(ListenOptions endpoint) => _stock.ConfigureEndpoint(endpoint);

    public override void Verify(Stream stream, Socket socket)
    {
        PocStream poc = (PocStream)stream;
        ushort cipher = LibSsl.SSL_CIPHER_get_protocol_id(LibSsl.SSL_get_current_cipher(poc.Ssl));
        if (!poc.IsInKernel || cipher != (ushort)TlsCipherSuite.TLS_AES_256_GCM_SHA384)
        {
            throw new BenchFailedException($"poc: in the kernel {poc.IsInKernel}, cipher suite {(TlsCipherSuite)cipher}");
        }
    }
}

using System.Net.Security;
using System.Net.Sockets;
using KernelTls.Bench.Poc;

namespace KernelTls.Bench.Modes;

/// <summary>The closed proof of concept's way: what this library has to beat.</summary>
internal sealed class PocMode : Mode
{
    private readonly PocContext _context;

    public PocMode(BenchCertificates certificates, bool resume) => _context = new PocContext(certificates, resume);

    public override string Name => ModeTable.Opponent;

    public override bool UsesKernel => true;

    public override Task<Stream> ConnectAsync(Socket socket) => _context.ConnectAsync(socket);

    public override Task<Stream> AcceptAsync(Socket socket) => _context.AcceptAsync(socket);

    public override Task EndSendingAsync(Stream stream)
    {
        PocStream poc = (PocStream)stream;
        _context.KeepSession(poc);
        poc.EndSending();
        return Task.CompletedTask;
    }

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

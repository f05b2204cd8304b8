using System.Net.Security;
using System.Net.Sockets;

namespace KernelTls.Bench.Modes;

/// <summary>This library's stream, one of its data paths.</summary>
internal sealed class KtlsStreamMode : SslStreamMode
{
    private readonly KtlsOptions _options;
    private readonly KtlsDataPath _path;

    private KtlsStreamMode(string name, BenchCertificates certificates, bool resume, KtlsOptions options, KtlsDataPath path)
        : base(certificates, resume)
    {
        Name = name;
        _options = options;
        _path = path;

        // Here the library tries the kernel out, with sockets that the kernel counts: not while anything is measured.
        _ = KtlsPlatform.IsSupported;
    }

    public override string Name { get; }

    public override bool UsesKernel => _path == KtlsDataPath.Kernel;

    /// <summary>OpenSSL on the socket, without the kernel.</summary>
    public static KtlsStreamMode Direct(string name, BenchCertificates certificates, bool resume) =>
        new(name, certificates, resume, new KtlsOptions { Mode = KtlsMode.Disabled, DirectOpenSsl = true }, KtlsDataPath.OpenSsl);

    public static KtlsStreamMode Kernel(string name, BenchCertificates certificates, bool resume) =>
        new(name, certificates, resume, new KtlsOptions { Mode = KtlsMode.Required }, KtlsDataPath.Kernel);

    public override void Verify(Stream stream)
    {
        base.Verify(stream);
        KtlsOffload offload = ((KtlsStream)stream).Offload;
        if (offload.Send != _path || offload.Receive != _path)
        {
            throw new BenchFailedException($"{Name} runs on {offload}");
        }
    }

    protected override SslStream Create(NetworkStream transport) => new KtlsStream(transport, leaveInnerStreamOpen: false, _options);

    // By the variable's type: SslStream's own members would run the stock handshake.
    protected override Task ShakeHandsAsync(SslStream stream, SslClientAuthenticationOptions options) =>
        ((KtlsStream)stream).AuthenticateAsClientAsync(options);

    protected override Task ShakeHandsAsync(SslStream stream, SslServerAuthenticationOptions options) =>
        ((KtlsStream)stream).AuthenticateAsServerAsync(options);
}

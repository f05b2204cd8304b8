using System.Net.Security;
using System.Net.Sockets;
using KernelTls.Bench.Scenarios;

namespace KernelTls.Bench.Modes;

/// <summary>This library's stream, one of its data paths.</summary>
internal sealed class KtlsStreamMode : SslStreamMode
{
    // linux/tls.h
    private const int SolTls = 282;
    private const int TlsRxExpectNoPad = 4;

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

    /// <summary>The kernel decrypts straight into the receiver's memory.</summary>
    public static KtlsStreamMode KernelWithoutPadding(string name, BenchCertificates certificates, bool resume) =>
        new(name, certificates, resume, new KtlsOptions { Mode = KtlsMode.Required, ExpectNoPadding = true }, KtlsDataPath.Kernel);

    public override ValueTask SendFileAsync(Stream stream, BenchFile file) =>
        ((KtlsStream)stream).SendFileAsync(file.Handle, 0, file.Length);

    public override void Verify(Stream stream, Socket socket)
    {
        base.Verify(stream, socket);
        KtlsOffload offload = ((KtlsStream)stream).Offload;
        if (offload.Send != _path || offload.Receive != _path)
        {
            throw new BenchFailedException($"{Name} runs on {offload}");
        }

        if (UsesKernel && ExpectsNoPadding(socket) != _options.ExpectNoPadding)
        {
            throw new BenchFailedException($"{Name}: to the kernel, ExpectNoPadding is {!_options.ExpectNoPadding}");
        }
    }

    protected override SslStream Create(NetworkStream transport) => new KtlsStream(transport, leaveInnerStreamOpen: false, _options);

    // By the variable's type: SslStream's own members would run the stock handshake.
    protected override Task ShakeHandsAsync(SslStream stream, SslClientAuthenticationOptions options) =>
        ((KtlsStream)stream).AuthenticateAsClientAsync(options);

    protected override Task ShakeHandsAsync(SslStream stream, SslServerAuthenticationOptions options) =>
        ((KtlsStream)stream).AuthenticateAsServerAsync(options);

    private static bool ExpectsNoPadding(Socket socket)
    {
        Span<byte> value = stackalloc byte[sizeof(int)];
        _ = socket.GetRawSocketOption(SolTls, TlsRxExpectNoPad, value);
        return BitConverter.ToInt32(value) != 0;
    }
}

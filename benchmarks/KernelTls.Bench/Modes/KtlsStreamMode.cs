using System.Net.Security;
using System.Net.Sockets;
using KernelTls.AspNetCore;
using KernelTls.Bench.Scenarios;
using Microsoft.AspNetCore.Hosting;

namespace KernelTls.Bench.Modes;

/// <summary>Represents this library's stream with one of its data paths.</summary>
internal sealed class KtlsStreamMode : SslStreamMode
{
    // linux/tls.h
    private const int SolTls = 282;
    private const int TlsRxExpectNoPad = 4;

    private readonly Action<KtlsOptions> _configure;
    private readonly KtlsOptions _options = new();
    private readonly KtlsDataPath _path;
    private readonly Ends _ends;

    private KtlsStreamMode(
        string name, BenchCertificates certificates, bool resume, KtlsDataPath path, Ends ends, Action<KtlsOptions> configure)
        : base(certificates, resume)
    {
        Name = name;
        _path = path;
        _ends = ends;
        _configure = configure;
        _configure(_options);

        // The library probes the kernel here, with sockets that the kernel counts. This must not happen during a
        // measurement.
        _ = KtlsPlatform.Probe();
    }

    /// <summary>Specifies the ends that use this library. The other ends use the stock stream.</summary>
    [Flags]
    private enum Ends
    {
        Client = 1,
        Server = 2,
        Both = Client | Server,
    }

    public override string Name { get; }

    public override int KernelEnds => _path != KtlsDataPath.Kernel ? 0 : _ends == Ends.Both ? 2 : 1;

    /// <summary>Creates the mode in which OpenSSL works on the socket without kernel TLS.</summary>
    public static KtlsStreamMode Direct(string name, BenchCertificates certificates, bool resume) =>
        new(name, certificates, resume, KtlsDataPath.OpenSsl, Ends.Both, PreferOpenSsl);

    public static KtlsStreamMode DirectClient(string name, BenchCertificates certificates, bool resume) =>
        new(name, certificates, resume, KtlsDataPath.OpenSsl, Ends.Client, PreferOpenSsl);

    public static KtlsStreamMode DirectServer(string name, BenchCertificates certificates, bool resume) =>
        new(name, certificates, resume, KtlsDataPath.OpenSsl, Ends.Server, PreferOpenSsl);

    public static KtlsStreamMode Kernel(string name, BenchCertificates certificates, bool resume) =>
        new(name, certificates, resume, KtlsDataPath.Kernel, Ends.Both, Require);

    /// <summary>Creates the mode in which the kernel decrypts directly into the receiver's memory.</summary>
    public static KtlsStreamMode KernelWithoutPadding(string name, BenchCertificates certificates, bool resume) =>
        new(name, certificates, resume, KtlsDataPath.Kernel, Ends.Both, options =>
        {
            Require(options);
            options.ExpectNoPadding = KtlsExpectNoPadding.Always;
        });

    public static KtlsStreamMode KernelClient(string name, BenchCertificates certificates, bool resume) =>
        new(name, certificates, resume, KtlsDataPath.Kernel, Ends.Client, Require);

    public static KtlsStreamMode KernelServer(string name, BenchCertificates certificates, bool resume) =>
        new(name, certificates, resume, KtlsDataPath.Kernel, Ends.Server, Require);

    public override ValueTask SendFileAsync(Stream stream, BenchFile file) =>
        stream is KtlsStream ktls ? ktls.SendFileAsync(file.Handle, 0, file.Length) : base.SendFileAsync(stream, file);

    public override SocketsHttpHandler CreateHandler() =>
        _ends.HasFlag(Ends.Client) ? base.CreateHandler().UseKernelTls(_options) : base.CreateHandler();

    public override void ConfigureServer(IWebHostBuilder server)
    {
        if (_ends.HasFlag(Ends.Server))
        {
            server.UseKernelTls(_configure);
        }
    }

    public override void Verify(Stream stream, Socket socket)
    {
        base.Verify(stream, socket);
        if (stream is not KtlsStream ktls)
        {
            return;
        }

        KtlsOffload offload = ktls.Offload;
        if (offload.Send != _path || offload.Receive != _path)
        {
            throw new BenchFailedException($"{Name} runs on {offload}");
        }

        if (KernelEnds > 0 && ExpectsNoPadding(socket) != KtlsPlatform.Probe().CanExpectNoPadding)
        {
            throw new BenchFailedException($"{Name}: TLS_RX_EXPECT_NO_PAD is {ExpectsNoPadding(socket)}");
        }
    }

    protected override SslStream Create(NetworkStream transport, bool isServer) =>
        _ends.HasFlag(isServer ? Ends.Server : Ends.Client)
            ? new KtlsStream(transport, leaveInnerStreamOpen: false, _options)
            : base.Create(transport, isServer);

    private static void PreferOpenSsl(KtlsOptions options)
    {
        options.Mode = KtlsMode.Disabled;
        options.Fallback = KtlsFallback.OpenSsl;
    }

    private static void Require(KtlsOptions options) => options.Mode = KtlsMode.Required;

    private static bool ExpectsNoPadding(Socket socket)
    {
        Span<byte> value = stackalloc byte[sizeof(int)];
        _ = socket.GetRawSocketOption(SolTls, TlsRxExpectNoPad, value);
        return BitConverter.ToInt32(value) != 0;
    }
}

namespace KernelTls.Bench.Modes;

/// <summary>
/// Defines all modes in the order of the table: modes of connections with both ends in this process, and modes of
/// servers in a separate process.
/// </summary>
internal static class ModeTable
{
    public const string Floor = "plain";
    public const string Stock = "sslstream";

    /// <summary>The stock stream in a process that watches for stock handshakes: what the watch costs each of them.</summary>
    public const string Watched = "sslstream-watched";
    public const string Direct = "direct";
    public const string DirectClient = "direct-client";
    public const string DirectServer = "direct-server";
    public const string Kernel = "ktls";

    /// <summary>
    /// The mode <see cref="Kernel"/> in which the kernel decrypts directly into the receiver's memory.
    /// </summary>
    public const string KernelWithoutPadding = "ktls-nopad";
    public const string KernelClient = "ktls-client";
    public const string KernelServer = "ktls-server";

    /// <summary>
    /// The mode <see cref="Kernel"/> in a process whose runtime has no meters and event sources. It shows their cost
    /// without listeners.
    /// </summary>
    public const string KernelWithoutTelemetry = "ktls-no-telemetry";

    /// <summary>The mode that uses TlsSocketSession of .NET 11, only in rows of streams.</summary>
    public const string TlsSession = "tlssession";

    /// <summary>The mode that uses Kestrel's experimental transport DirectTls at the server's end, only in rows of HTTP.</summary>
    public const string DirectTls = "directtls";
    public const string Nginx = "nginx";
    public const string NginxKernel = "nginx-ktls";

    /// <summary>
    /// The mode of library rows with the library as it is published. In the other modes the library is woven.
    /// </summary>
    public const string Unwoven = "unwoven";

    private delegate Mode Factory(string name, BenchCertificates certificates, bool resume);

    private static readonly (string Name, Factory Create)[] s_modes =
    [
        (Floor, (_, _, _) => new PlainMode()),
        (Stock, (_, certificates, resume) => new SslStreamMode(certificates, resume)),
        (Watched, (_, certificates, resume) => new WatchedSslStreamMode(certificates, resume)),
        (Direct, KtlsStreamMode.Direct),
        (TlsSession, (_, certificates, resume) => new TlsSessionMode(certificates, resume)),
        (Kernel, KtlsStreamMode.Kernel),
        (KernelWithoutPadding, KtlsStreamMode.KernelWithoutPadding),
        (KernelWithoutTelemetry, WithoutTelemetry),
        (KernelClient, KtlsStreamMode.KernelClient),
        (KernelServer, KtlsStreamMode.KernelServer),
        (DirectClient, KtlsStreamMode.DirectClient),
        (DirectServer, KtlsStreamMode.DirectServer),
        (DirectTls, (_, certificates, resume) => new DirectTlsMode(certificates, resume)),
    ];

    /// <summary>Gets the modes of streams.</summary>
    public static IReadOnlyList<string> Streams { get; } = [.. s_modes.Select(mode => mode.Name).Where(mode => mode != DirectTls)];

    /// <summary>
    /// Gets the modes that support all operations of connections: they send files, resume sessions and carry HttpClient
    /// and Kestrel.
    /// </summary>
    public static IReadOnlyList<string> Connections { get; } = [.. Streams.Where(mode => mode != TlsSession)];

    /// <summary>Gets the modes of HttpClient and Kestrel.</summary>
    public static IReadOnlyList<string> Http { get; } = [.. Connections, DirectTls];

    public static IReadOnlyList<string> Servers { get; } = [NginxKernel, Nginx, Stock, Kernel];

    /// <summary>Gets the modes of a library's client: as published, woven with kernel TLS off, and woven with kernel TLS on.</summary>
    public static IReadOnlyList<string> Libraries { get; } = [Unwoven, Stock, Kernel, KernelWithoutPadding];

    /// <summary>
    /// Gets the modes with kernel TLS at both ends of a connection, at the client's end and at the server's end.
    /// </summary>
    public static IReadOnlyList<string> KernelEnds { get; } = [Kernel, KernelClient, KernelServer];

    public static IReadOnlyList<string> Names { get; } = [.. Streams.Union(Http).Union(Servers).Union(Libraries)];

    private static KtlsStreamMode WithoutTelemetry(string name, BenchCertificates certificates, bool resume)
    {
        BenchProcess.VerifyWithoutTelemetry();
        return KtlsStreamMode.Kernel(name, certificates, resume);
    }

    public static Mode Create(string name, BenchCertificates certificates, bool resume) =>
        s_modes.Single(mode => mode.Name == name).Create(name, certificates, resume);
}

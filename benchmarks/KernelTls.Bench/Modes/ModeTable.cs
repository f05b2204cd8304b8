namespace KernelTls.Bench.Modes;

/// <summary>All modes, in the order of the table: of connections with both ends here, and of servers in a process of their own.</summary>
internal static class ModeTable
{
    public const string Floor = "plain";
    public const string Stock = "sslstream";
    public const string Opponent = "poc";
    public const string Kernel = "ktls";

    /// <summary>As <see cref="Kernel"/>, in a process whose runtime has no meters and event sources: what they cost while nobody listens.</summary>
    public const string KernelWithoutTelemetry = "ktls-no-telemetry";
    public const string Nginx = "nginx";
    public const string NginxKernel = "nginx-ktls";

    private delegate Mode Factory(string name, BenchCertificates certificates, bool resume);

    private static readonly (string Name, Factory Create)[] s_modes =
    [
        (Floor, (_, _, _) => new PlainMode()),
        (Stock, (_, certificates, resume) => new SslStreamMode(certificates, resume)),
        ("direct", KtlsStreamMode.Direct),
        (Opponent, (_, certificates, resume) => new PocMode(certificates, resume)),
        (Kernel, KtlsStreamMode.Kernel),
        ("ktls-nopad", KtlsStreamMode.KernelWithoutPadding),
        (KernelWithoutTelemetry, WithoutTelemetry),
        ("ktls-client", KtlsStreamMode.KernelClient),
        ("ktls-server", KtlsStreamMode.KernelServer),
    ];

    public static IReadOnlyList<string> Connections { get; } = [.. s_modes.Select(mode => mode.Name)];

    public static IReadOnlyList<string> Servers { get; } = [NginxKernel, Nginx, Stock, Kernel];

    public static IReadOnlyList<string> Names { get; } = [.. Connections.Union(Servers)];

    private static KtlsStreamMode WithoutTelemetry(string name, BenchCertificates certificates, bool resume)
    {
        BenchProcess.VerifyWithoutTelemetry();
        return KtlsStreamMode.Kernel(name, certificates, resume);
    }

    public static Mode Create(string name, BenchCertificates certificates, bool resume) =>
        s_modes.Single(mode => mode.Name == name).Create(name, certificates, resume);
}

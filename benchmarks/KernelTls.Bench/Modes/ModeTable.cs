namespace KernelTls.Bench.Modes;

/// <summary>All modes, in the order of the table.</summary>
internal static class ModeTable
{
    public const string Floor = "plain";
    public const string Stock = "sslstream";
    public const string Opponent = "poc";

    private delegate Mode Factory(string name, BenchCertificates certificates, bool resume);

    private static readonly (string Name, Factory Create)[] s_modes =
    [
        (Floor, (_, _, _) => new PlainMode()),
        (Stock, (_, certificates, resume) => new SslStreamMode(certificates, resume)),
        ("direct", KtlsStreamMode.Direct),
        (Opponent, (_, certificates, resume) => new PocMode(certificates, resume)),
        ("ktls", KtlsStreamMode.Kernel),
        ("ktls-nopad", KtlsStreamMode.KernelWithoutPadding),
        ("ktls-client", KtlsStreamMode.KernelClient),
        ("ktls-server", KtlsStreamMode.KernelServer),
    ];

    public static IReadOnlyList<string> Names { get; } = [.. s_modes.Select(mode => mode.Name)];

    public static Mode Create(string name, BenchCertificates certificates, bool resume) =>
        s_modes.Single(mode => mode.Name == name).Create(name, certificates, resume);
}

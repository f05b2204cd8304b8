using System.Security.Authentication;
using KernelTls.Offload;

namespace KernelTls.Tests;

/// <summary>Describes the kernels, OpenSSLs and runtimes with which an accepted difference occurs.</summary>
/// <param name="Text">The text for the documentation, or an empty string for all.</param>
/// <param name="Holds">The predicate that indicates whether the condition holds here.</param>
internal sealed record FaultCondition(string Text, Func<TlsMode, SslProtocols, bool> Holds)
{
    private static readonly Version s_receives13 = new(3, 2);
    private static readonly Version s_drops = new(3, 5);

    public static FaultCondition Always { get; } = new("", static (_, _) => true);

    /// <summary>Gets the condition that the kernel receives. OpenSSL before 3.2 receives TLS 1.3 itself.</summary>
    public static FaultCondition KernelReceives { get; } = new("", static (mode, version) => Receives(mode, version));

    public static FaultCondition OldOpenSsl { get; } = new("OpenSSL < 3.2", static (_, _) => KtlsPlatform.Probe().OpenSslVersion < s_receives13);

    public static FaultCondition DroppingOpenSsl { get; } = new(
        "OpenSSL >= 3.5", static (mode, version) => KtlsPlatform.Probe().OpenSslVersion >= s_drops && Receives(mode, version));

    public static FaultCondition Rekeys { get; } = new(
        "the kernel changes keys", static (mode, version) => KtlsPlatform.Probe().CanRekey && Receives(mode, version));

    /// <summary>
    /// Gets the condition that the kernel looks for KeyUpdates. One that changes keys does so in TLS 1.2 too, regardless of OpenSSL.
    /// </summary>
    public static FaultCondition RekeyingKernel { get; } = new("the kernel changes keys", static (_, _) => Platform.Current.Kernel.CanRekeyReceive);

    public static FaultCondition CannotRekey { get; } = new(
        "the kernel cannot change keys", static (mode, version) => !KtlsPlatform.Probe().CanRekey && Receives(mode, version));

    /// <summary>
    /// Gets the condition that OpenSSL, before 3.2, receives a KeyUpdate that cannot be answered, because the kernel
    /// sends TLS 1.3 and cannot change its key.
    /// </summary>
    public static FaultCondition CannotAnswer { get; } = new(
        "OpenSSL < 3.2",
        static (mode, version) => mode == TlsMode.Kernel && version == SslProtocols.Tls13 && !KtlsPlatform.Probe().CanRekey && !Receives(mode, version));

    /// <summary>Gets the condition for .NET 10. The stock stream differs between runtimes.</summary>
    public static FaultCondition Net10 { get; } = new(".NET 10", static (_, _) => Environment.Version.Major < 11);

    public static FaultCondition Net11 { get; } = new(".NET 11", static (_, _) => Environment.Version.Major >= 11);

    private static bool Receives(TlsMode mode, SslProtocols version) =>
        mode == TlsMode.Kernel && (version == SslProtocols.Tls12 || KtlsPlatform.Probe().OpenSslVersion >= s_receives13);
}

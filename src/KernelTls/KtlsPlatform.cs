using System.Net.Security;
using System.Security.Authentication;
using KernelTls.Offload;

namespace KernelTls;

/// <summary>What this process can do with kernel TLS: found out once by real trials, on first use. Thread-safe; never throws.</summary>
public static class KtlsPlatform
{
    /// <summary>Connections can be offloaded here, in at least one direction of some version and cipher.</summary>
    public static bool IsSupported => Platform.Current.KernelReason == KtlsFallbackReason.None;

    /// <summary>Why <see cref="IsSupported"/> is <see langword="false"/>, or <see cref="KtlsFallbackReason.None"/>.</summary>
    public static KtlsFallbackReason NotSupportedReason => Platform.Current.KernelReason;

    /// <summary>More on <see cref="NotSupportedReason"/> where there is more to say (a missing symbol, an errno); else empty.</summary>
    public static string NotSupportedDetail => Platform.Current.Detail;

    /// <summary>Version of the OpenSSL that .NET and this library share; 0.0 where none is loaded.</summary>
    public static Version OpenSslVersion => Platform.Current.OpenSslVersion;

    /// <summary>OpenSSL's own version text, such as <c>OpenSSL 3.5.7 1 Jul 2025</c>; empty where none is loaded.</summary>
    public static string OpenSslVersionText => Platform.Current.OpenSslText;

    /// <summary>Release of the running kernel, as <c>uname -r</c> prints it on Linux.</summary>
    public static string KernelRelease { get; } = ReadKernelRelease();

    /// <summary>
    /// TLS 1.3 keys can be changed while the kernel holds them (RFC 8446, section 4.6.3): Linux 6.14 and OpenSSL 3.2.
    /// Where they cannot, a KeyUpdate ends the connection with a <see cref="KtlsRekeyException"/>.
    /// </summary>
    public static bool CanRekey => Platform.Current.CanRekey;

    /// <summary>
    /// <see cref="KtlsOptions.ExpectNoPadding"/> has an effect here: a kernel that takes it (Linux 6.0) and garbles no padded
    /// record (6.12.107 does), and OpenSSL 3.2.
    /// </summary>
    public static bool CanExpectNoPadding => Platform.Current.CanExpectNoPadding;

    /// <summary>Why such a connection would not be in the kernel in one direction.</summary>
    /// <param name="direction"><see cref="KtlsDirections.Send"/> or <see cref="KtlsDirections.Receive"/>.</param>
    /// <param name="protocol">The negotiated version.</param>
    /// <param name="cipherSuite">The negotiated suite.</param>
    /// <returns><see cref="KtlsFallbackReason.None"/> where it would be.</returns>
    /// <exception cref="ArgumentOutOfRangeException"><paramref name="direction"/> is not exactly one direction.</exception>
    public static KtlsFallbackReason GetFallbackReason(
        KtlsDirections direction, SslProtocols protocol, TlsCipherSuite cipherSuite)
    {
        if (direction is not (KtlsDirections.Send or KtlsDirections.Receive))
        {
            throw new ArgumentOutOfRangeException(nameof(direction), direction, "Expected Send or Receive.");
        }

        Platform platform = Platform.Current;
        return platform.KernelReason != KtlsFallbackReason.None
            ? platform.KernelReason
            : OffloadPlan.Foresee(direction, protocol, cipherSuite, platform.OpenSslVersion, platform.Kernel);
    }

    private static string ReadKernelRelease()
    {
        const string Path = "/proc/sys/kernel/osrelease";
        try
        {
            return File.ReadAllText(Path).Trim();
        }
        catch (Exception e) when (e is IOException or UnauthorizedAccessException)
        {
            return Environment.OSVersion.Version.ToString();
        }
    }
}

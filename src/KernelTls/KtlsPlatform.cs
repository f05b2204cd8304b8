using System.Net.Security;
using System.Security.Authentication;
using KernelTls.Offload;

namespace KernelTls;

/// <summary>Describes what this process can do with kernel TLS. Immutable.</summary>
/// <remarks>
/// It describes the machine, whatever the environment variables and options say: they decide whether a stream uses what is possible.
/// </remarks>
public sealed class KtlsPlatform
{
    private readonly Platform _platform;

    private KtlsPlatform(Platform platform) => _platform = platform;

    /// <summary>
    /// Gets a value that indicates whether connections can be offloaded in at least one direction for some version and
    /// cipher.
    /// </summary>
    public bool IsSupported => _platform.KernelReason == KtlsFallbackReason.None;

    /// <summary>
    /// Gets the reason why <see cref="IsSupported"/> is <see langword="false"/>, or
    /// <see cref="KtlsFallbackReason.None"/>.
    /// </summary>
    public KtlsFallbackReason NotSupportedReason => _platform.KernelReason;

    /// <summary>
    /// Gets details about <see cref="NotSupportedReason"/>, such as a missing symbol or an errno, or an empty string if
    /// there are none.
    /// </summary>
    public string NotSupportedDetail => _platform.Detail;

    /// <summary>Gets the version of the OpenSSL that .NET and this library share, or 0.0 if none is loaded.</summary>
    public Version OpenSslVersion => _platform.OpenSslVersion;

    /// <summary>
    /// Gets OpenSSL's version text, such as <c>OpenSSL 3.5.7 1 Jul 2025</c>, or an empty string if none is loaded.
    /// </summary>
    public string OpenSslVersionText => _platform.OpenSslText;

    /// <summary>Gets the release of the running kernel, as printed by <c>uname -r</c> on Linux.</summary>
    public static string KernelRelease { get; } = ReadKernelRelease();

    /// <summary>
    /// Gets a value that indicates whether TLS 1.3 keys can be changed while the kernel holds them (RFC 8446, section
    /// 4.6.3). This requires Linux 6.14, or a kernel with the backport (RHEL 10), and OpenSSL 3.2. The kernel is tried, its version does not matter.
    /// </summary>
    /// <remarks>
    /// If keys cannot be changed, a KeyUpdate ends the connection with a <see cref="KtlsRekeyException"/>.
    /// </remarks>
    public bool CanRekey => _platform.CanRekey;

    /// <summary>
    /// Gets a value that indicates whether <see cref="KtlsOptions.ExpectNoPadding"/> has an effect. This requires
    /// OpenSSL 3.2 and a kernel that accepts the option (Linux 6.0) and does not corrupt padded records, as Linux
    /// 6.12.107 does.
    /// </summary>
    public bool CanExpectNoPadding => _platform.CanExpectNoPadding;

    /// <summary>Tries what the native library, OpenSSL, the runtime and the kernel can do. Thread-safe.</summary>
    /// <remarks>
    /// The first call makes about twenty connections over loopback, in each of which it installs keys, and blocks for some milliseconds.
    /// Later calls return the same result. Only after a trial that could not be made (<see cref="KtlsFallbackReason.ProbeFailed"/>), the
    /// trials are repeated by a call that comes at least five seconds later. The first handshake that may use kernel TLS does the same.
    /// </remarks>
    /// <returns>The result. What is missing is a reason in it, never an exception.</returns>
    public static KtlsPlatform Probe() => new(Platform.Current);

    /// <summary>
    /// Returns the reason why one direction of a connection with the specified parameters would not be in the kernel.
    /// </summary>
    /// <param name="direction"><see cref="KtlsDirections.Send"/> or <see cref="KtlsDirections.Receive"/>.</param>
    /// <param name="protocol">The negotiated protocol version.</param>
    /// <param name="cipherSuite">The negotiated cipher suite.</param>
    /// <returns>The reason, or <see cref="KtlsFallbackReason.None"/> if the direction would be in the kernel.</returns>
    /// <exception cref="ArgumentOutOfRangeException">
    /// <paramref name="direction"/> is not exactly one direction.
    /// </exception>
    public KtlsFallbackReason GetFallbackReason(
        KtlsDirections direction, SslProtocols protocol, TlsCipherSuite cipherSuite)
    {
        if (direction is not (KtlsDirections.Send or KtlsDirections.Receive))
        {
            throw new ArgumentOutOfRangeException(nameof(direction), direction, "Expected Send or Receive.");
        }

        return _platform.KernelReason != KtlsFallbackReason.None
            ? _platform.KernelReason
            : OffloadPlan.PredictFallback(direction, protocol, cipherSuite, _platform.OpenSslVersion, _platform.Kernel);
    }

    private static string ReadKernelRelease()
    {
        const string Path = "/proc/sys/kernel/osrelease";
        if (!Platform.IsLinux)
        {
            return Environment.OSVersion.Version.ToString();
        }

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

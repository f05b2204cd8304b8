using System.Runtime.Versioning;
using System.Security.Cryptography;
using KernelTls.Handshake;
using KernelTls.Interop;

namespace KernelTls.Offload;

/// <summary>
/// What this process can do, found out once, on first use: native library, OpenSSL, runtime, kernel. Never throws; what is
/// missing is a reason. Two levels: <see cref="DirectReason"/> (OpenSSL on the socket) and <see cref="KernelReason"/>.
/// </summary>
internal sealed class Platform
{
    private static readonly Lazy<Platform> s_current = new(Detect);

    private Platform(KtlsFallbackReason directReason, KtlsFallbackReason kernelReason)
    {
        DirectReason = directReason;
        KernelReason = kernelReason;
    }

    public static Platform Current => s_current.Value;

    /// <summary>None: <see cref="Engine.DirectOpenSsl"/> works here.</summary>
    public KtlsFallbackReason DirectReason { get; }

    /// <summary>None: <see cref="Engine.Kernel"/> works here.</summary>
    public KtlsFallbackReason KernelReason { get; }

    public Version OpenSslVersion { get; private init; } = new(0, 0);

    public string OpenSslText { get; private init; } = "";

    public LibraryCapabilities OpenSslCapabilities { get; private init; }

    public KernelAbilities Kernel { get; private init; } = KernelAbilities.Nothing;

    /// <summary>Detail behind a reason, for messages: a missing symbol, a loader's complaint. Empty for none.</summary>
    public string Detail { get; private init; } = "";

    /// <summary>The detail, where the platform was looked at; a process that has kernel TLS switched off never looks.</summary>
    public static string KnownDetail => s_current.IsValueCreated ? s_current.Value.Detail : "";

    /// <summary>The peer's or our own next key can be given to the kernel: Linux 6.14 with OpenSSL 3.2.</summary>
    public bool CanRekey => Kernel.CanRekeySend && Kernel.CanRekeyReceive && OpenSslVersion >= new Version(3, 2);

    /// <summary>The kernel takes TLS_RX_EXPECT_NO_PAD, and OpenSSL gives it the keys that this is about.</summary>
    public bool CanExpectNoPadding => Kernel.CanExpectNoPadding && OpenSslVersion >= new Version(3, 2);

    private static Platform Detect() =>
        OperatingSystem.IsLinux() ? DetectOnLinux() : new Platform(KtlsFallbackReason.NotLinux, KtlsFallbackReason.NotLinux);

    [SupportedOSPlatform("linux")]
    private static unsafe Platform DetectOnLinux()
    {
        // Touching this makes .NET load its OpenSSL, so that the shim finds the very same image already in the process.
        long managedVersion;
        try
        {
            managedVersion = SafeEvpPKeyHandle.OpenSslVersion;
        }
        catch (Exception e) when (e is TypeInitializationException or DllNotFoundException or PlatformNotSupportedException)
        {
            return None(KtlsFallbackReason.OpenSslNotFound, e.Message);
        }

        LibraryInfo info;
        int errno;
        try
        {
            errno = KtlsNative.KtlsNative_Initialize(Environment.GetEnvironmentVariable("DOTNET_OPENSSL_VERSION_OVERRIDE"), &info);
        }
        catch (Exception e) when (e is DllNotFoundException or BadImageFormatException or EntryPointNotFoundException)
        {
            return None(KtlsFallbackReason.NativeLibraryMissing, e.Message);
        }

        if (errno != 0)
        {
            return errno == Errno.NoEntry
                ? None(KtlsFallbackReason.OpenSslNotFound, "libssl.so.3 cannot be loaded.")
                : None(KtlsFallbackReason.OpenSslTooOld,
                    $"{NativeText.Decode(info.SoName)} {NativeText.Decode(info.VersionText)} lacks {NativeText.Decode(info.MissingSymbol)}.");
        }

        KtlsFallbackReason direct = info.OpenSslVersion != managedVersion ? KtlsFallbackReason.OpenSslMismatch
            : !RuntimeInternals.IsAvailable ? KtlsFallbackReason.RuntimeNotKnown
            : KtlsFallbackReason.None;
        return DetectKernel(info, direct);
    }

    private static unsafe Platform DetectKernel(in LibraryInfo info, KtlsFallbackReason direct)
    {
        KernelProbe probe;
        int errno = KtlsNative.KtlsNative_ProbeKernel(&probe);
        KtlsFallbackReason kernel = direct != KtlsFallbackReason.None ? direct
            : (info.Capabilities & LibraryCapabilities.Ktls) == 0 ? KtlsFallbackReason.OpenSslWithoutKtls
            : errno != 0 ? KtlsFallbackReason.ProbeFailed
            : probe.UlpErrno != 0 ? KtlsFallbackReason.ModuleMissing
            : KtlsFallbackReason.None;
        return new Platform(direct, kernel)
        {
            OpenSslVersion = DecodeVersion(info.OpenSslVersion),
            OpenSslText = NativeText.Decode(info.VersionText),
            OpenSslCapabilities = info.Capabilities,
            Kernel = errno == 0 && probe.UlpErrno == 0 ? new KernelAbilities(probe) : KernelAbilities.Nothing,
            Detail = errno != 0 ? $"errno {errno}" : probe.UlpErrno != 0 ? $"TCP_ULP: errno {probe.UlpErrno}" : "",
        };
    }

    private static Platform None(KtlsFallbackReason reason, string detail) => new(reason, reason) { Detail = detail };

    /// <summary>OPENSSL_VERSION_NUMBER, 0xMNN00PP0 since 3.0.</summary>
    internal static Version DecodeVersion(long number) =>
        new((int)(number >> 28) & 0xF, (int)(number >> 20) & 0xFF, (int)(number >> 4) & 0xFF);
}

using System.Runtime.Versioning;
using System.Security.Cryptography;
using KernelTls.Handshake;
using KernelTls.Interop;

namespace KernelTls.Offload;

/// <summary>
/// What this process can do, found out once, on first use: native library, OpenSSL, runtime, kernel. Never throws; what is
/// missing is a reason. Only a trial that could not be made is made again later. Two levels: <see cref="DirectReason"/> (OpenSSL on the socket) and <see cref="KernelReason"/>.
/// </summary>
internal sealed class Platform
{
    // A trial that failed may do better once there are descriptors, memory or a loopback device.
    private static readonly Reconsidered<Platform> s_current = new(
        Detect, p => p.KernelReason != KtlsFallbackReason.ProbeFailed, TimeSpan.FromSeconds(5), TimeProvider.System);

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
    public static string KnownDetail => s_current.IsKnown ? s_current.Value.Detail : "";

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
            : WhyNot(errno, probe);
        return new Platform(direct, kernel)
        {
            OpenSslVersion = DecodeVersion(info.OpenSslVersion),
            OpenSslText = NativeText.Decode(info.VersionText),
            OpenSslCapabilities = info.Capabilities,
            Kernel = errno == 0 && probe.UlpErrno == 0 ? new KernelAbilities(probe) : KernelAbilities.Nothing,
            Detail = errno != 0 ? $"errno {errno}"
                : probe.UlpErrno != 0 ? $"TCP_ULP: errno {probe.UlpErrno}"
                : kernel == KtlsFallbackReason.NotPermitted ? $"TLS_TX: errno {probe.Send[0]}"
                : "",
        };
    }

    /// <summary>What the probe's outcome says of the kernel as a whole.</summary>
    /// <param name="errno">Why the probe could not be made, or 0.</param>
    /// <param name="probe">The probe's answers.</param>
    internal static KtlsFallbackReason WhyNot(int errno, in KernelProbe probe) =>
        Errno.IsDenial(errno) || Errno.IsDenial(probe.UlpErrno) ? KtlsFallbackReason.NotPermitted
        : errno != 0 || Errno.IsPassing(probe.UlpErrno) ? KtlsFallbackReason.ProbeFailed
        : probe.UlpErrno != 0 ? KtlsFallbackReason.ModuleMissing
        : AreAllDenied(probe.Send) && AreAllDenied(probe.Receive) ? KtlsFallbackReason.NotPermitted
        : KtlsFallbackReason.None;

    private static bool AreAllDenied(ReadOnlySpan<int> table)
    {
        foreach (int errno in table)
        {
            if (!Errno.IsDenial(errno))
            {
                return false;
            }
        }

        return true;
    }

    private static Platform None(KtlsFallbackReason reason, string detail) => new(reason, reason) { Detail = detail };

    /// <summary>OPENSSL_VERSION_NUMBER, 0xMNN00PP0 since 3.0.</summary>
    internal static Version DecodeVersion(long number) =>
        new((int)(number >> 28) & 0xF, (int)(number >> 20) & 0xFF, (int)(number >> 4) & 0xFF);
}

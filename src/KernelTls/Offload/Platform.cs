using System.Runtime.InteropServices;
using System.Runtime.Versioning;
using System.Security.Cryptography;
using KernelTls.Handshake;
using KernelTls.Interop;

namespace KernelTls.Offload;

/// <summary>
/// Describes the capabilities of this process: native library, OpenSSL, runtime and kernel. Never throws.
/// </summary>
/// <remarks>
/// The capabilities are determined once, on first use. A missing prerequisite is reported as a reason. Only a trial
/// that could not be made is repeated later. There are two levels: <see cref="DirectReason"/> (OpenSSL on the socket)
/// and <see cref="KernelReason"/>.
/// </remarks>
internal sealed class Platform
{
    // A failed trial may succeed later, when descriptors, memory or a loopback device are available.
    private static readonly RefreshingValue<Platform> s_current = new(
        Detect, p => p.KernelReason != KtlsFallbackReason.ProbeFailed, TimeSpan.FromSeconds(5), TimeProvider.System);

    private Platform(KtlsFallbackReason directReason, KtlsFallbackReason kernelReason)
    {
        DirectReason = directReason;
        KernelReason = kernelReason;
    }

    public static Platform Current => s_current.Value;

    /// <summary>Gets or sets a value that indicates whether the system is Linux. Tests set it, before the first use of the platform.</summary>
    [SupportedOSPlatformGuard("linux")]
    public static bool IsLinux { get; set; } = OperatingSystem.IsLinux();

    /// <summary>Gets the reason why <see cref="Engine.DirectOpenSsl"/> cannot be used here, or None.</summary>
    public KtlsFallbackReason DirectReason { get; }

    /// <summary>Gets the reason why <see cref="Engine.Kernel"/> cannot be used here, or None.</summary>
    public KtlsFallbackReason KernelReason { get; }

    public Version OpenSslVersion { get; private init; } = new(0, 0);

    public string OpenSslText { get; private init; } = "";

    /// <summary>Gets a value that indicates whether OpenSSL is built with kernel TLS.</summary>
    public bool OpenSslHasKtls { get; private init; }

    public KernelCapabilities Kernel { get; private init; } = KernelCapabilities.Nothing;

    /// <summary>
    /// Gets the detail behind a reason, for messages, such as a missing symbol or a loader's error, or an empty string.
    /// </summary>
    public string Detail { get; private init; } = "";

    /// <summary>
    /// Gets the platform if it was already detected, or null. A process with kernel TLS switched off never detects it.
    /// </summary>
    public static Platform? Known => s_current.IsKnown ? s_current.Value : null;

    /// <summary>
    /// Returns what the platform lacks, or the setting that is wrong, if that is this reason; otherwise an empty string.
    /// </summary>
    public static string DetailOf(KtlsFallbackReason reason) => reason == KtlsFallbackReason.ToggleInvalid
        ? Toggles.InvalidDetail
        : Known is { } known && (reason == known.KernelReason || reason == known.DirectReason) ? known.Detail : "";

    /// <summary>
    /// Gets a value that indicates whether the next key of either end can be installed in the kernel: Linux 6.14, or a kernel with the backport
    /// (RHEL 10), with OpenSSL 3.2.
    /// </summary>
    public bool CanRekey => Kernel.CanRekeySend && Kernel.CanRekeyReceive && OpenSslVersion >= new Version(3, 2);

    /// <summary>
    /// Gets a value that indicates whether the kernel accepts TLS_RX_EXPECT_NO_PAD and OpenSSL installs the keys that
    /// it applies to.
    /// </summary>
    public bool CanExpectNoPadding => Kernel.CanExpectNoPadding && OpenSslVersion >= new Version(3, 2);

    private static Platform Detect() =>
        IsLinux ? DetectOnLinux() : new Platform(KtlsFallbackReason.NotLinux, KtlsFallbackReason.NotLinux);

    [SupportedOSPlatform("linux")]
    private static unsafe Platform DetectOnLinux()
    {
        // This makes .NET load its OpenSSL, so that the shim finds the same image already in the process.
        long managedVersion;
        try
        {
            managedVersion = SafeEvpPKeyHandle.OpenSslVersion;
        }
        catch (Exception e) when (e is TypeInitializationException or DllNotFoundException or PlatformNotSupportedException)
        {
            return None(KtlsFallbackReason.OpenSslNotFound, e.Message);
        }

        (KtlsFallbackReason direct, string detail) = GetNativeReason(GetInterface);
        if (direct != KtlsFallbackReason.None)
        {
            return None(direct, detail);
        }

        LibraryInfo info;
        int errno = KtlsNative.KtlsNative_Initialize(managedVersion, &info);
        (direct, detail) = GetLibraryReason(errno, info, managedVersion);
        if (errno != 0)
        {
            return None(direct, detail);
        }

        if (direct == KtlsFallbackReason.None)
        {
            (direct, detail) = GetRuntimeReason(RuntimeInternals.Missing, RuntimeCanary.FindChange);
        }

        return DetectKernel(info, direct, detail);
    }

    private static unsafe ulong GetInterface()
    {
        ulong hash;
        _ = KtlsNative.KtlsNative_GetInterface(&hash);
        return hash;
    }

    /// <summary>Returns the reason why this library cannot call the native library, and its detail.</summary>
    /// <param name="getInterface">The first call of the native library, which returns the hash of its interface.</param>
    internal static (KtlsFallbackReason Reason, string Detail) GetNativeReason(Func<ulong> getInterface)
    {
        const ulong Expected = KtlsNative.Interface;
        try
        {
            ulong found = getInterface();
            return found == Expected
                ? (KtlsFallbackReason.None, "")
                : (KtlsFallbackReason.NativeLibraryMismatch, $"The native library has the interface {found:x16}, and KernelTls.dll calls {Expected:x16}.");
        }
        catch (EntryPointNotFoundException e)
        {
            return (KtlsFallbackReason.NativeLibraryMismatch, Summarize(e.Message));
        }
        catch (Exception e) when (e is DllNotFoundException or BadImageFormatException)
        {
            return (KtlsFallbackReason.NativeLibraryMissing, Summarize(e.Message));
        }
    }

    /// <summary>Returns the reason why this library cannot use the OpenSSL of the process, and its detail.</summary>
    /// <param name="errno">What the native library returned when it was bound to OpenSSL.</param>
    /// <param name="info">The libssl that the native library found in the process.</param>
    /// <param name="managedVersion">OPENSSL_VERSION_NUMBER of the OpenSSL that .NET uses.</param>
    internal static (KtlsFallbackReason Reason, string Detail) GetLibraryReason(int errno, in LibraryInfo info, long managedVersion)
    {
        Version version = DecodeVersion(info.OpenSslVersion);
        string name = $"{NativeText.Decode(info.SoName)} ({NativeText.Decode(info.VersionText)})";
        return errno == Errno.NoEntry
                ? (KtlsFallbackReason.OpenSslNotFound, $"No libssl.so is loaded in this process, although .NET uses OpenSSL {DecodeVersion(managedVersion)}.")
            : info.OpenSslVersion != managedVersion
                ? (KtlsFallbackReason.OpenSslMismatch, $"{name} is loaded, and .NET uses OpenSSL {DecodeVersion(managedVersion)}.")
            : errno == 0
                ? (KtlsFallbackReason.None, "")
            : errno != Errno.NotSupported
                ? (KtlsFallbackReason.OpenSslNotSupported, $"{name} lacks {NativeText.Decode(info.MissingSymbol)}.")
            : version.Major < 3
                ? (KtlsFallbackReason.OpenSslTooOld, $"{name} is older than 3.0.")
                : (KtlsFallbackReason.OpenSslNotSupported, $"{name} has the major version {version.Major}; 3 and 4 are supported.");
    }

    /// <summary>Returns the reason why this library cannot work with the runtime, and its detail.</summary>
    /// <param name="missing">The private members that the runtime lacks, or an empty string.</param>
    /// <param name="findChange">
    /// The function that finds differences in behavior. Called only if nothing is missing.
    /// </param>
    internal static (KtlsFallbackReason Reason, string Detail) GetRuntimeReason(string missing, Func<string> findChange)
    {
        string version = RuntimeInformation.FrameworkDescription;
        if (missing.Length != 0)
        {
            return (KtlsFallbackReason.RuntimeNotSupported, $"{version} lacks {missing}.");
        }

        string change = findChange();
        return change.Length == 0
            ? (KtlsFallbackReason.None, "")
            : (KtlsFallbackReason.RuntimeChanged, $"{version}: {change}.");
    }

    private static unsafe Platform DetectKernel(in LibraryInfo info, KtlsFallbackReason direct, string runtimeDetail)
    {
        KernelProbe probe;
        int errno = KtlsNative.KtlsNative_ProbeKernel(&probe);
        KtlsFallbackReason kernel = direct != KtlsFallbackReason.None ? direct
            : info.HasKtls == 0 ? KtlsFallbackReason.OpenSslWithoutKtls
            : GetFallbackReason(errno, probe);
        return new Platform(direct, kernel)
        {
            OpenSslVersion = DecodeVersion(info.OpenSslVersion),
            OpenSslText = NativeText.Decode(info.VersionText),
            OpenSslHasKtls = info.HasKtls != 0,
            Kernel = errno == 0 && probe.UlpErrno == 0 ? new KernelCapabilities(probe) : KernelCapabilities.Nothing,
            Detail = runtimeDetail.Length != 0 ? runtimeDetail
                : errno != 0 ? $"errno {errno}"
                : probe.UlpErrno != 0 ? $"TCP_ULP: errno {probe.UlpErrno}"
                : kernel == KtlsFallbackReason.NotPermitted ? $"TLS_TX: errno {probe.Send[0]}"
                : "",
        };
    }

    /// <summary>Returns the reason that the probe's result gives for the kernel as a whole.</summary>
    /// <param name="errno">The errno if the probe could not be made; otherwise 0.</param>
    /// <param name="probe">The results of the probe.</param>
    internal static KtlsFallbackReason GetFallbackReason(int errno, in KernelProbe probe) =>
        Errno.IsDenial(errno) || Errno.IsDenial(probe.UlpErrno) ? KtlsFallbackReason.NotPermitted
        : errno != 0 || Errno.IsTransient(probe.UlpErrno) ? KtlsFallbackReason.ProbeFailed
        : Errno.IsAbsence(probe.UlpErrno) ? KtlsFallbackReason.UlpNotSupported
        : probe.UlpErrno != 0 ? KtlsFallbackReason.ModuleMissing
        : AreAllDenied(probe.Send) && AreAllDenied(probe.Receive) ? KtlsFallbackReason.NotPermitted
        : KtlsFallbackReason.None;

    /// <summary>
    /// Returns the first sentence of what .NET says of a library that it cannot load, and the first attempt that found a file. The rest names
    /// a dozen paths, and tools for programmers.
    /// </summary>
    internal static string Summarize(string message)
    {
        int end = message.IndexOf(". ", StringComparison.Ordinal);
        string? found = message.Split('\n').Skip(1).FirstOrDefault(
            l => !string.IsNullOrWhiteSpace(l) && !l.Contains("No such file", StringComparison.Ordinal));
        return $"{(end < 0 ? message : message[..(end + 1)])} {found?.Trim()}".TrimEnd();
    }

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

    /// <summary>Decodes OPENSSL_VERSION_NUMBER, which is 0xMNN00PP0 since 3.0.</summary>
    internal static Version DecodeVersion(long number) =>
        new((int)(number >> 28) & 0xF, (int)(number >> 20) & 0xFF, (int)(number >> 4) & 0xFF);
}

using System.Buffers.Binary;
using System.Net.Security;
using System.Security.Authentication;
using System.Security.Cryptography;
using System.Text;
using KernelTls.Interop;
using KernelTls.Offload;

namespace KernelTls.UnitTests;

public class PlatformTests
{
    [Theory]
    [InlineData(0x30000000L, "3.0.0")]
    [InlineData(0x300000F0L, "3.0.15")]
    [InlineData(0x30500070L, "3.5.7")]
    [InlineData(0x30600030L, "3.6.3")]
    [InlineData(0x40100000L, "4.1.0")]
    [InlineData(0x30A000F0L, "3.10.15")]
    public void An_OpenSSL_version_number_is_major_minor_patch(long number, string expected) =>
        Assert.Equal(expected, Platform.DecodeVersion(number).ToString());

    [Theory]
    [InlineData("Unable to load it.", "Unable to load it.")]
    [InlineData("Unable to load it. Use strace: \n/a/x.so: cannot open: No such file or directory\n/b/x.so: the same: No such file or directory\n",
        "Unable to load it.")]
    [InlineData("Unable to load it. Use strace: \n/a/x.so: cannot open: No such file or directory\n/b/x.so: file too short\n/c/x.so: invalid\n",
        "Unable to load it. /b/x.so: file too short")]
    public void What_the_loader_says_becomes_a_sentence(string message, string expected) =>
        Assert.Equal(expected, Platform.Summarize(message));

    [Fact]
    public unsafe void The_shim_has_the_interface_of_the_header_which_this_library_calls()
    {
        byte[] header = File.ReadAllBytes(Path.Combine(AppContext.BaseDirectory, "..", "..", "..", "..", "native", "ktls_export.h"));
        ulong expected = BinaryPrimitives.ReadUInt64BigEndian(SHA256.HashData(header));
        ulong hash;

        Assert.Equal(0, KtlsNative.KtlsNative_GetInterface(&hash));
        Assert.Equal(expected, hash);
        Assert.Equal((KtlsFallbackReason.None, ""), Platform.GetNativeReason(() => expected));
    }

    [Fact]
    public void A_shim_with_another_interface_is_of_another_build() => Assert.Equal(
        (KtlsFallbackReason.NativeLibraryMismatch, $"The native library has the interface 0000000000000abc, and KernelTls.dll calls {KtlsNative.Interface:x16}."),
        Platform.GetNativeReason(() => 0xABC));

    /// <summary>.NET's exceptions: of a shim from before there was the function, of none, and of one for another platform.</summary>
    [Theory]
    [InlineData(typeof(EntryPointNotFoundException), KtlsFallbackReason.NativeLibraryMismatch)]
    [InlineData(typeof(DllNotFoundException), KtlsFallbackReason.NativeLibraryMissing)]
    [InlineData(typeof(BadImageFormatException), KtlsFallbackReason.NativeLibraryMissing)]
    public void A_shim_that_cannot_be_called(Type thrown, KtlsFallbackReason expected) => Assert.Equal(
        (expected, "Why."), Platform.GetNativeReason(() => throw (Exception)Activator.CreateInstance(thrown, "Why.")!));

    [Theory]
    [InlineData(0, 0x30500070L, "3", "", 0x30500070L, KtlsFallbackReason.None, "")]
    [InlineData(0, 0x40000030L, "4", "", 0x40000030L, KtlsFallbackReason.None, "")]
    [InlineData(2, 0L, "", "", 0x30500070L, KtlsFallbackReason.OpenSslNotFound,
        "No libssl.so is loaded in this process, although .NET uses OpenSSL 3.5.7.")]
    [InlineData(0, 0x30500070L, "3", "", 0x40000030L, KtlsFallbackReason.OpenSslMismatch, "libssl.so.3 (text) is loaded, and .NET uses OpenSSL 4.0.3.")]
    [InlineData(95, 0x50000000L, "5", "", 0x30500070L, KtlsFallbackReason.OpenSslMismatch, "libssl.so.5 (text) is loaded, and .NET uses OpenSSL 3.5.7.")]
    [InlineData(95, 0x50000000L, "5", "", 0x50000000L, KtlsFallbackReason.OpenSslNotSupported,
        "libssl.so.5 (text) has the major version 5; 3 and 4 are supported.")]
    [InlineData(95, 0x1010117FL, "1.1", "", 0x1010117FL, KtlsFallbackReason.OpenSslTooOld, "libssl.so.1.1 (text) is older than 3.0.")]
    [InlineData(38, 0x40000030L, "4", "SSL_new", 0x40000030L, KtlsFallbackReason.OpenSslNotSupported, "libssl.so.4 (text) lacks SSL_new.")]
    public void What_the_libssl_of_the_process_means(
        int errno, long version, string suffix, string lacks, long managedVersion, KtlsFallbackReason expected, string detail)
    {
        LibraryInfo info = new() { OpenSslVersion = version };
        Encoding.ASCII.GetBytes("text", info.VersionText);
        Encoding.ASCII.GetBytes($"libssl.so.{suffix}", info.SoName);
        Encoding.ASCII.GetBytes(lacks, info.MissingSymbol);

        Assert.Equal((expected, detail), Platform.GetLibraryReason(errno, info, managedVersion));
    }

    [Theory]
    [InlineData(0, 0, 0, KtlsFallbackReason.None)]
    [InlineData(0, 0, 22, KtlsFallbackReason.None)] // keys are evaluated one by one
    [InlineData(0, 2, 2, KtlsFallbackReason.ModuleMissing)]
    [InlineData(0, 38, 38, KtlsFallbackReason.UlpNotSupported)]
    [InlineData(0, 92, 92, KtlsFallbackReason.UlpNotSupported)]
    [InlineData(0, 95, 95, KtlsFallbackReason.UlpNotSupported)]
    [InlineData(0, 1, 1, KtlsFallbackReason.NotPermitted)]
    [InlineData(0, 13, 13, KtlsFallbackReason.NotPermitted)]
    [InlineData(0, 0, 1, KtlsFallbackReason.NotPermitted)]
    [InlineData(1, 1, 1, KtlsFallbackReason.NotPermitted)]
    [InlineData(24, 24, 24, KtlsFallbackReason.ProbeFailed)]
    [InlineData(0, 12, 12, KtlsFallbackReason.ProbeFailed)]
    public void What_a_probe_says_of_the_kernel(int errno, int ulp, int keys, KtlsFallbackReason expected)
    {
        KernelProbe probe = new() { UlpErrno = ulp };
        ((Span<int>)probe.Send).Fill(keys);
        ((Span<int>)probe.Receive).Fill(keys);

        Assert.Equal(expected, Platform.GetFallbackReason(errno, probe));
    }

    [Fact]
    public void A_denied_direction_is_its_own_reason()
    {
        int[] accepted = new int[8];
        int[] denied = [.. Enumerable.Repeat(1, 8)];
        KernelCapabilities kernel = new(accepted, denied, false, false);

        Assert.Equal(KtlsFallbackReason.None, kernel.GetFallbackReason(KtlsDirections.Send, SslProtocols.Tls13, CipherKind.Aes128Gcm));
        Assert.Equal(KtlsFallbackReason.NotPermitted, kernel.GetFallbackReason(KtlsDirections.Receive, SslProtocols.Tls13, CipherKind.Aes128Gcm));
    }

    [Fact]
    public void The_private_members_of_SslStream_are_those_this_library_knows() => Assert.True(RuntimeInternals.IsAvailable);

    [Fact]
    public void OpenSSL_on_the_socket_works_here() =>
        Assert.Equal(KtlsFallbackReason.None, Platform.Current.DirectReason);

    [Fact]
    public void Being_supported_and_having_a_reason_exclude_each_other() =>
        Assert.Equal(KtlsPlatform.Probe().IsSupported, KtlsPlatform.Probe().NotSupportedReason == KtlsFallbackReason.None);

    [Fact]
    public void The_versions_are_known()
    {
        Assert.True(KtlsPlatform.Probe().OpenSslVersion >= new Version(3, 0), KtlsPlatform.Probe().OpenSslVersion.ToString());
        Assert.StartsWith($"OpenSSL {KtlsPlatform.Probe().OpenSslVersion}", KtlsPlatform.Probe().OpenSslVersionText, StringComparison.Ordinal);
        Assert.Equal(File.ReadAllText("/proc/sys/kernel/osrelease").Trim(), KtlsPlatform.KernelRelease);
    }

    [Theory]
    [InlineData(KtlsDirections.None)]
    [InlineData(KtlsDirections.Both)]
    [InlineData((KtlsDirections)4)]
    public void A_fallback_reason_is_asked_for_exactly_one_direction(KtlsDirections direction) =>
        Assert.Equal("direction", Assert.Throws<ArgumentOutOfRangeException>(() => KtlsPlatform.Probe().GetFallbackReason(
            direction, SslProtocols.Tls13, TlsCipherSuite.TLS_AES_128_GCM_SHA256)).ParamName);

    [Fact]
    public void A_suite_that_no_kernel_has_is_never_foreseen_in_the_kernel()
    {
        KtlsFallbackReason reason = KtlsPlatform.Probe().GetFallbackReason(
            KtlsDirections.Send, SslProtocols.Tls12, TlsCipherSuite.TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256);

        Assert.Equal(
            KtlsPlatform.Probe().IsSupported ? KtlsFallbackReason.CipherNotOffloadable : KtlsPlatform.Probe().NotSupportedReason, reason);
    }

    [Fact]
    public void An_unknown_mode_is_refused()
    {
        KtlsOptions options = new();
        Assert.Throws<ArgumentOutOfRangeException>(() => options.Mode = (KtlsMode)17);
        Assert.Equal(KtlsMode.Environment, options.Mode);
    }
}

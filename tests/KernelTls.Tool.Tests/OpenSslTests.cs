using System.Buffers.Binary;
using System.Diagnostics;
using System.Text;
using KernelTls.Tests;

namespace KernelTls.Tool.Tests;

/// <summary>Runs ktls info on copies of this machine's OpenSSL, which .NET loads, and which KernelTls does not support.</summary>
public class OpenSslTests
{
    [Fact]
    public async Task A_newer_major_version_is_named()
    {
        using TemporaryDirectory directory = new();
        Version own = KtlsPlatform.Probe().OpenSslVersion;
        byte[] crypto = File.ReadAllBytes(PathOf("libcrypto.so"));
        Replace(crypto, Code(own), Code(new Version(5, own.Minor, own.Build)));
        File.WriteAllBytes(directory[$"libcrypto.so.{own.Major}"], crypto);
        File.Copy(PathOf("libssl.so"), directory["libssl.so.5"]);

        Ktls.Result result = await RunAsync(directory, "5");

        AssertDetail(
            result,
            $"libssl.so.5 ({KtlsPlatform.Probe().OpenSslVersionText}) has the major version 5; 3 and 4 are supported.");
    }

    [Fact]
    public async Task A_missing_function_is_named()
    {
        using TemporaryDirectory directory = new();
        int major = KtlsPlatform.Probe().OpenSslVersion.Major;
        byte[] ssl = File.ReadAllBytes(PathOf("libssl.so"));
        Replace(ssl, "\0SSL_CTX_set_session_ticket_cb\0"u8, "\0SSL_CTX_set_session_ticket_xx\0"u8);
        File.WriteAllBytes(directory[$"libssl.so.{major}"], ssl);

        Ktls.Result result = await RunAsync(directory, $"{major}");

        AssertDetail(
            result,
            $"libssl.so.{major} ({KtlsPlatform.Probe().OpenSslVersionText}) lacks SSL_CTX_set_session_ticket_cb.");
    }

    private static void AssertDetail(Ktls.Result result, string detail)
    {
        Assert.StartsWith("Kernel TLS: no: OpenSslNotSupported: ", result.Output, StringComparison.Ordinal);
        Assert.Contains(detail, result.Output, StringComparison.Ordinal);
        Assert.Contains("OpenSSL     not supported", result.Output, StringComparison.Ordinal);
    }

    private static async Task<Ktls.Result> RunAsync(TemporaryDirectory directory, string suffix)
    {
        Ktls.Result result = await Ktls.RunAsync(
            [("LD_LIBRARY_PATH", directory.FullName), ("DOTNET_OPENSSL_VERSION_OVERRIDE", suffix), (Ktls.KernelVariable, "1")], "info");
        return result.AssertExit(ExitCode.No);
    }

    /// <summary>The library that .NET has loaded into this process.</summary>
    private static string PathOf(string name)
    {
        Assert.NotEqual(new Version(0, 0), KtlsPlatform.Probe().OpenSslVersion); // and so it is loaded
        using Process self = Process.GetCurrentProcess();
        return self.Modules.Cast<ProcessModule>().First(m => m.ModuleName.StartsWith(name, StringComparison.Ordinal)).FileName;
    }

    /// <summary>The end of OpenSSL_version_num on x64: mov eax, VERSION; ret.</summary>
    private static byte[] Code(Version version)
    {
        byte[] code = [0xB8, 0, 0, 0, 0, 0xC3];
        BinaryPrimitives.WriteInt32LittleEndian(code.AsSpan(1), (version.Major << 28) | (version.Minor << 20) | (version.Build << 4));
        return code;
    }

    private static void Replace(byte[] library, ReadOnlySpan<byte> old, ReadOnlySpan<byte> replacement)
    {
        int at = library.AsSpan().IndexOf(old);
        Assert.True(at >= 0, $"The library has no {Encoding.Latin1.GetString(old)}.");
        replacement.CopyTo(library.AsSpan(at));
        Assert.Equal(-1, library.AsSpan().IndexOf(old));
    }
}

using System.Diagnostics;
using System.Runtime.Versioning;
using System.Security.Cryptography;
using KernelTls.Tests;

namespace KernelTls.UnitTests;

/// <summary>Tests that a run of tests ends before its first test unless .NET and the library use the OpenSSL that the cell promises.</summary>
[SupportedOSPlatform("linux")]
public class OpenSslCheckTests
{
    private static readonly long s_used = SafeEvpPKeyHandle.OpenSslVersion >> 28;

    [Fact]
    public async Task With_the_promised_version_tests_run()
    {
        (int code, string said) = await RunAsync($"{s_used}");

        Assert.Contains("Total: 1,", said, StringComparison.Ordinal);
        Assert.True(code == 0, said);
    }

    [Fact]
    public async Task With_another_version_no_test_runs()
    {
        (int code, string said) = await RunAsync($"{s_used + 1}");

        Assert.Contains($"KTLS_OPENSSL={s_used + 1}, but .NET and the library use {s_used} {s_used}.", said, StringComparison.Ordinal);
        Assert.DoesNotContain("Total: 1,", said, StringComparison.Ordinal);
        Assert.NotEqual(0, code);
    }

    [Theory]
    [InlineData(4, 4, true)]
    [InlineData(3, 3, false)]
    [InlineData(3, 4, false)]
    [InlineData(4, 3, false)]
    [InlineData(4, 0, false)]
    public void Both_use_the_promised_version(long runtime, int library, bool areRight) => Assert.Equal(
        areRight ? "" : $"KTLS_OPENSSL=4, but .NET and the library use {runtime} {library}.", OpenSslCheck.FindDifference("4", runtime, library));

    [Fact(Explicit = true)]
    public void One_test() => Assert.NotEqual(0, s_used);

    private static async Task<(int Code, string Said)> RunAsync(string promised)
    {
        ProcessStartInfo start = new(
            Environment.ProcessPath!, [typeof(OpenSslCheckTests).Assembly.Location, "-explicit", "only", "-method", $"{typeof(OpenSslCheckTests).FullName}.{nameof(One_test)}"])
        {
            RedirectStandardOutput = true,
            RedirectStandardError = true,
            Environment = { ["KTLS_OPENSSL"] = promised },
        };
        using Process run = Process.Start(start)!;
        Task<string> errors = run.StandardError.ReadToEndAsync();
        string said = await run.StandardOutput.ReadToEndAsync().InTime("the output of a run of tests");
        said += await errors.InTime("the errors of a run of tests");
        await run.WaitForExitAsync().InTime("a run of tests to end");
        return (run.ExitCode, said);
    }
}

using KernelTls.Tests;

namespace KernelTls.ConformanceTests;

/// <summary>
/// Tests that a container's seccomp profile that denies the options of kernel TLS, and a sandbox that does not know them, have their own
/// reasons, which differ from a missing module and an old kernel. A filter is permanent, so each case runs in a separate process.
/// </summary>
public class SeccompTests
{
    private const string DenyVariable = "KERNELTLS_SECCOMP_DENY";
    private const int Tcp = 6;
    private const int TcpUlp = 31;
    private const int Tls = 282;

    [Theory]
    [InlineData(Tcp, 1, KtlsFallbackReason.NotPermitted)]
    [InlineData(Tcp, 13, KtlsFallbackReason.NotPermitted)]
    [InlineData(Tcp, 92, KtlsFallbackReason.UlpNotSupported)]
    [InlineData(Tls, 1, KtlsFallbackReason.NotPermitted)]
    public async Task A_denied_option_is_a_reason_of_its_own(int level, int errno, KtlsFallbackReason expected)
    {
        Assert.SkipWhen(level == Tls && !KtlsPlatform.Probe().IsSupported, "Without a tls module no key is ever tried.");
        await OwnProcess.RunAsync(typeof(SeccompTests), nameof(Deny_and_ask), (DenyVariable, $"{level} {errno} {(int)expected}"));
    }

    /// <summary>Runs in the separate process.</summary>
    [Fact(Explicit = true)]
    public void Deny_and_ask()
    {
        int[] deny = [.. Environment.GetEnvironmentVariable(DenyVariable)!.Split(' ').Select(int.Parse)];
        SeccompFilter.DenyOption(deny[0], deny[0] == Tcp ? TcpUlp : null, deny[1]);

        Assert.Equal((KtlsFallbackReason)deny[2], KtlsPlatform.Probe().NotSupportedReason);
        Assert.Contains($"errno {deny[1]}", KtlsPlatform.Probe().NotSupportedDetail, StringComparison.Ordinal);
    }
}

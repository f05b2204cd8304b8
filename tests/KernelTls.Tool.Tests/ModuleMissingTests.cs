using KernelTls.Tests;

namespace KernelTls.Tool.Tests;

/// <summary>Tests kernels without a tls module: the boot without it, and hosts.</summary>
[Trait("cell", "no-tls-module")]
public class ModuleMissingTests
{
    [Fact]
    public async Task The_verdict_and_what_to_do()
    {
        Assert.True(KtlsPlatform.Probe().IsSupported || !Cell.KtlsExpected);
        Ktls.Result result = await Ktls.RunAsync("info");
        if (KtlsPlatform.Probe().IsSupported)
        {
            Assert.Contains(" Loaded", result.AssertExit(ExitCode.Ok).Output, StringComparison.Ordinal);
            return;
        }

        Assert.StartsWith("Kernel TLS: no: ModuleMissing: ", result.AssertExit(ExitCode.No).Output, StringComparison.Ordinal);
        Assert.Contains("modprobe tls", result.Output, StringComparison.Ordinal);
        Assert.Contains("none: no tls module", result.Output, StringComparison.Ordinal);
        Assert.Equal( // the cell has the file, but its kernel is configured not to load it
            Cell.IsLab, result.Output.Contains("Loadable. It was not loaded on request", StringComparison.Ordinal));
    }
}

using KernelTls.Tests;

namespace KernelTls.ConformanceTests;

public class CoverageTests
{
    [Fact]
    public void The_contracts_run_in_kernel_mode_as_well()
    {
        Cell.RequireKtls();
        Assert.True(Modes.IncludeKernel);
    }

    [Fact]
    public void The_contracts_run_on_OpenSSL() => Assert.NotEmpty(Modes.OnOpenSsl);
}

using KernelTls.Offload;

namespace KernelTls.AspNetCore.Tests;

/// <summary>
/// Tests when the package's hosting startup registers anything. ZeroCodeTests of the package tests covers what it
/// registers.
/// </summary>
public class HostingStartupTests
{
    [Theory]
    [InlineData("Unset", false, false)]
    [InlineData("Off", false, false)]
    [InlineData("On", false, true)]
    [InlineData("Invalid", false, true)]
    [InlineData("Unset", true, true)]
    [InlineData("Off", true, true)]
    public void What_the_environment_asks_for(string kernel, bool direct, bool asked) =>
        Assert.Equal(asked, KernelTlsHostingStartup.IsRequested(Enum.Parse<Toggle>(kernel), direct));
}

using KernelTls.Offload;

namespace KernelTls.AspNetCore.Tests;

/// <summary>When the start-up that the package adds does anything. What it does then: ZeroCodeTests of the package tests.</summary>
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
        Assert.Equal(asked, KernelTlsHostingStartup.IsAsked(Enum.Parse<Toggle>(kernel), direct));
}

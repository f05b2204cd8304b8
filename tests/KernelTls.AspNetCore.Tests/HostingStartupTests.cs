using KernelTls.Offload;

namespace KernelTls.AspNetCore.Tests;

/// <summary>
/// Tests when the package's hosting startup registers anything. ZeroCodeTests of the package tests covers what it
/// registers.
/// </summary>
public class HostingStartupTests
{
    [Theory]
    [InlineData("Unset", "Unset", false)]
    [InlineData("Unset", "Off", false)]
    [InlineData("Unset", "On", true)]
    [InlineData("Unset", "Invalid", true)]
    [InlineData("On", "Unset", true)]
    [InlineData("On", "Off", true)]
    [InlineData("Invalid", "Unset", true)]
    [InlineData("Off", "Unset", false)]
    [InlineData("Off", "On", false)]
    [InlineData("Off", "Invalid", false)]
    public void What_the_environment_asks_for(string kernel, string directOpenSsl, bool asked) =>
        Assert.Equal(asked, Toggles.IsAnyOn(Enum.Parse<Toggle>(kernel), Enum.Parse<Toggle>(directOpenSsl)));
}

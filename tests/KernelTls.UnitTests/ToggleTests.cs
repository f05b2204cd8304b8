using KernelTls.Offload;

namespace KernelTls.UnitTests;

[Trait("system", "any")]
public class ToggleTests
{
    [Theory]
    [InlineData(null, null, "Unset")]
    [InlineData("", null, "Unset")]
    [InlineData("", true, "On")]
    [InlineData(null, true, "On")]
    [InlineData(null, false, "Off")]
    [InlineData("1", null, "On")]
    [InlineData("true", null, "On")]
    [InlineData("TRUE", false, "On")]
    [InlineData("0", null, "Off")]
    [InlineData("0", true, "Off")]
    [InlineData("False", true, "Off")]
    [InlineData("yes", null, "Invalid")]
    [InlineData("yes", true, "Invalid")]
    [InlineData(" 1", null, "Invalid")]
    [InlineData("2", false, "Invalid")]
    public void The_variable_wins_over_the_AppContext_switch(string? variable, bool? appContextSwitch, string expected) =>
        Assert.Equal(expected, Toggles.ParseKernel(variable, appContextSwitch).ToString());
}

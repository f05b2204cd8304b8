using KernelTls.Tests;

namespace KernelTls.PackageTests;

/// <summary>
/// Tests <c>eng/portable</c>, with which the hosted workflow builds and starts a woven web application on Windows and macOS. Here the reason is that
/// of this machine.
/// </summary>
[Trait("loop", "outer")]
public class PortableTests(Workshop workshop)
{
    private const string Command = "eng/portable";

    private static readonly string s_command = Path.Combine(Repository.Root, Command);

    [Fact]
    public async Task A_woven_web_application_says_once_what_it_uses()
    {
        string packages = await workshop.PackagesAsync();
        KtlsFallbackReason reason = KtlsPlatform.Probe().NotSupportedReason;

        (int code, string said) = await Workshop.TryAsync(Repository.Root, s_command, "--packages", packages, "--expect", $"{reason}");
        (int other, string saidOther) = await Workshop.TryAsync(
            Repository.Root, s_command, "--packages", packages, "--expect", $"{KtlsFallbackReason.NotLinux}");

        Assert.True(code == 0, said);
        Assert.Contains($"portable: as expected ({reason})", said, StringComparison.Ordinal);
        Assert.True(other == 1, saidOther);
        Assert.Contains("portable: expected one line of the log with", saidOther, StringComparison.Ordinal);
    }

    [Theory]
    [InlineData("--packages", "artifacts/packages")]
    [InlineData("--expect", "None")]
    [InlineData("--packages", "docs", "--expect", "None")]
    [InlineData("anything")]
    public async Task A_command_line_that_is_none_ends_with_2(params string[] arguments) =>
        Assert.Equal(2, (await Workshop.TryAsync(Repository.Root, s_command, arguments)).Code);
}

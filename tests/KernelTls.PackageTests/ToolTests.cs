using System.Text.Json;
using KernelTls.Tests;

namespace KernelTls.PackageTests;

/// <summary>Tests the tool as an operator installs it: from its package, into a folder.</summary>
[Trait("loop", "outer")]
public class ToolTests(Workshop workshop)
{
    [Fact]
    public async Task Installed_from_its_package_it_finds_what_the_library_finds()
    {
        using TemporaryDirectory elsewhere = new();

        (int code, string said) = await Workshop.TryAsync(elsewhere.FullName, await workshop.ToolAsync(), "info", "--json");

        using JsonDocument info = JsonDocument.Parse(said);
        Assert.Equal(KtlsPlatform.Probe().IsSupported ? 0 : 1, code);
        Assert.Equal($"{KtlsPlatform.Probe().NotSupportedReason}", info.RootElement.GetProperty("reason").GetString());
        Assert.Equal($"{KtlsPlatform.Probe().OpenSslVersion}", info.RootElement.GetProperty("openSsl").GetProperty("version").GetString());
    }
}

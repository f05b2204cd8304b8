using KernelTls.Tool.Readers;

namespace KernelTls.Tool.Tests;

/// <summary>Tests which of the known faults a kernel has by its version, and that the document lists the same.</summary>
public class KernelFaultTests
{
    private const string Local = "CVE-2026-93824";

    [Theory]
    [InlineData("7.2", "7.2")]
    [InlineData("7.2.0", "7.2")]
    [InlineData("7.2-rc3", "7.2-rc3")]
    [InlineData("7.2.0-rc3", "7.2-rc3")]
    [InlineData("7.3~rc7-amd64", "7.3-rc7")]
    [InlineData("7.2.0-070200rc3-generic", "7.2-rc3")]
    [InlineData("6.12.117+deb13-cloud-amd64", "6.12.117")]
    [InlineData("6.12.0-86.el10.x86_64", "6.12")]
    [InlineData("6.6.87.2-microsoft-standard-WSL2", "6.6.87")]
    [InlineData("6.8.0-60-generic", "6.8")]
    [InlineData("6.18.45", "6.18.45")]
    [InlineData("5.10.258-arch1-1", "5.10.258")]
    public void A_version_is_read_from_the_release(string release, string version) => Assert.Equal(version, KernelVersion.Parse(release)?.ToString());

    [Theory]
    [InlineData("")]
    [InlineData("linux-6.1")]
    [InlineData("7")]
    [InlineData("seven.two")]
    public void A_release_without_a_version_has_no_known_faults(string release)
    {
        Assert.Null(KernelVersion.Parse(release));
        Assert.Null(KernelFaults.In(release, expectsNoPadding: false));
    }

    [Fact]
    public void Versions_are_in_order()
    {
        string[] ascending = ["5.15.212", "6.6.9", "6.6.10", "6.18.44", "6.18.45", "7.1.8", "7.2-rc3", "7.2-rc10", "7.2", "7.2.1", "7.10"];

        Assert.Equal(ascending, ascending.Reverse().Select(v => KernelVersion.Parse(v)!.Value).Order().Select(v => v.ToString()));
    }

    [Theory]
    [InlineData("5.19.17", false)]
    [InlineData("6.0", true)]
    [InlineData("6.1.190-1-amd64", true)]
    [InlineData("6.1.192-3", false)]
    [InlineData("6.6.87.2-microsoft-standard-WSL2", true)]
    [InlineData("6.12.113+deb13-amd64", true)]
    [InlineData("6.12.117+deb13-cloud-amd64", false)]
    [InlineData("6.17.9", true)]
    [InlineData("6.18.44", true)]
    [InlineData("6.18.45", false)]
    [InlineData("6.19.20", true)]
    [InlineData("7.1.8", true)]
    [InlineData("7.1.9", false)]
    [InlineData("7.2-rc3", true)]
    [InlineData("7.2", false)]
    [InlineData("7.2.12+deb13-cloud-amd64", false)]
    [InlineData("7.3~rc7-amd64", false)]
    [InlineData("10.0", false)]
    public void A_fault_is_in_the_versions_between(string release, bool has)
    {
        Assert.Equal(has, KernelFaults.In(release, expectsNoPadding: false)!.Contains(KernelFaults.Padding));
        Assert.DoesNotContain(KernelFaults.Padding, KernelFaults.In(release, expectsNoPadding: true)!);
    }

    /// <summary>Older series got this one with a correction, long after their first version.</summary>
    [Theory]
    [InlineData("5.15.159", false)]
    [InlineData("5.15.160", true)]
    [InlineData("5.15.203", false)]
    [InlineData("6.6.17", false)]
    [InlineData("6.6.18", true)]
    [InlineData("6.7.5", false)]
    [InlineData("6.7.6", true)]
    [InlineData("6.8.0-60-generic", true)]
    [InlineData("6.12.82", false)]
    [InlineData("7.0-rc1", true)]
    [InlineData("7.0", false)]
    public void A_fault_can_come_with_a_correction(string release, bool has) =>
        Assert.Equal(has, KernelFaults.In(release, expectsNoPadding: false)!.Contains("CVE-2026-31533"));

    [Fact]
    public void The_cells_have_none()
    {
        Assert.Empty(KernelFaults.In("6.12.117+deb13-cloud-amd64", expectsNoPadding: false)!);
        Assert.Empty(KernelFaults.In("7.2.12+deb13-cloud-amd64", expectsNoPadding: false)!);
        Assert.Equal([Local], KernelFaults.In("6.12.107", expectsNoPadding: true)!);
        Assert.Equal(KernelFaults.All.Count, KernelFaults.In("6.10", expectsNoPadding: false)!.Count);
    }

    [Fact]
    public void The_lists_are_in_order()
    {
        Assert.All(KernelFaults.All, fault =>
        {
            Assert.Equal(fault.Since.Order(), fault.Since);
            Assert.Equal(fault.Fixed.Order(), fault.Fixed);
            Assert.Equal(fault.Fixed.Count, fault.Fixed.DistinctBy(v => (v.Major, v.Minor)).Count());
            Assert.True(fault.Since[^1] < fault.Fixed[^1], fault.Id);
        });
        Assert.Equal(KernelFaults.All.Count, KernelFaults.All.DistinctBy(f => f.Id).Count());
    }

    [Fact]
    public void The_document_has_the_same_table()
    {
        string[] rows = [.. File.ReadAllLines(Path.Combine(AppContext.BaseDirectory, "security.md")).Where(l => l.StartsWith("| CVE-", StringComparison.Ordinal))];

        Assert.Equal(
            KernelFaults.All.Select(f => $"{f.Id}: {string.Join(", ", f.Since)}: {string.Join(", ", f.Fixed)}"),
            rows.Select(r => r.Split('|', StringSplitOptions.TrimEntries)).Select(c => $"{c[1]}: {c[3]}: {c[4]}"));
    }
}

using System.Diagnostics;
using KernelTls.Tests;

namespace KernelTls.PackageTests;

/// <summary>
/// Tests what decides about a release before anything is built: its tag, its section of the changelog, its version, and the tool chain of
/// the shim. Two whole releases, which eng/release --dry-run compares, take minutes; release.yml makes them.
/// </summary>
public class ReleaseTests
{
    [Theory]
    [InlineData]
    [InlineData("0.1.0")]
    [InlineData("v1")]
    [InlineData("v01.0.0")]
    [InlineData("v1.0.0+build")]
    [InlineData("v1.0.0", "v2.0.0")]
    [InlineData("v1.0.0", "--output")]
    public async Task A_command_line_that_is_none_ends_with_2(params string[] arguments) =>
        Assert.Equal(2, (await Workshop.TryAsync(Repository.Root, Repository.Release, arguments)).Code);

    /// <summary>A tag that is on no or another commit, and a version without notes, make no release.</summary>
    [Fact]
    public async Task The_commit_has_the_tag_and_the_changelog_its_section()
    {
        using TemporaryDirectory directory = new();
        string clone = directory["clone"];
        Repository.CopySources(clone);
        string[] author = ["-c", "user.name=test", "-c", "user.email=test@example.com", "-c", "init.defaultBranch=main"];
        await Workshop.RunAsync(clone, "git", [.. author, "init", "--quiet"]);
        await Workshop.RunAsync(clone, "git", [.. author, "commit", "--quiet", "--allow-empty", "--message", "first"]);
        await Workshop.RunAsync(clone, "git", "tag", "v9.8.7");
        await Workshop.RunAsync(clone, "git", [.. author, "commit", "--quiet", "--allow-empty", "--message", "second"]);

        await RefusedAsync("v9.9.9", "the commit that is checked out does not have the tag v9.9.9");
        await RefusedAsync("v9.8.7", "the commit that is checked out does not have the tag v9.8.7");
        await Workshop.RunAsync(clone, "git", "tag", "v9.8.8");
        await RefusedAsync("v9.8.8", "CHANGELOG.md has no section '## 9.8.8'");

        async Task RefusedAsync(string tag, string reason)
        {
            (int code, string said) = await Workshop.TryLineAsync(clone, $"eng/release {tag}");
            Assert.Equal(1, code);
            Assert.Contains(reason, said, StringComparison.Ordinal);
        }
    }

    /// <summary>eng/pack --version puts the version into the environment, and the projects take it from there.</summary>
    [Fact]
    public async Task The_version_and_the_address_come_from_outside()
    {
        const string address = "https://example.com/kernel-tls";
        string said = await ValuesAsync(("KernelTlsVersion", "3.2.1-rc.1"), ("RepositoryUrl", address));

        Assert.Contains("\"PackageVersion\": \"3.2.1-rc.1\"", said, StringComparison.Ordinal);
        Assert.Contains("\"AssemblyVersion\": \"3.2.1.0\"", said, StringComparison.Ordinal);
        Assert.Contains($"\"PackageProjectUrl\": \"{address}\"", said, StringComparison.Ordinal);
        Assert.Contains($"\"PackageReleaseNotes\": \"{address}/releases/tag/v3.2.1-rc.1\"", said, StringComparison.Ordinal);
        Assert.Contains("KernelTlsVersion", File.ReadAllText(Repository.Pack), StringComparison.Ordinal);
        Assert.Equal(2, (await Workshop.TryAsync(Repository.Root, Repository.Pack, "--version", "v1")).Code);

        static async Task<string> ValuesAsync(params (string, string)[] environment)
        {
            using Application build = Application.Start(
                "dotnet", Repository.Root, environment, "msbuild", "src/KernelTls", "-target:GetAssemblyVersion",
                "-getProperty:PackageVersion,AssemblyVersion,PackageProjectUrl,PackageReleaseNotes");
            return await build.SucceedAsync(TimeSpan.FromMinutes(2));
        }
    }

    /// <summary>The shim is built again in another folder; another tool chain than that of a release is an error.</summary>
    [Fact]
    public async Task The_shim_is_verified_with_the_tools_of_a_release()
    {
        string[][] rows = [.. File.ReadLines(Path.Combine(Repository.Root, "native/toolchain.tsv")).Skip(2).Select(line => line.Split('\t'))];
        Assert.Equal(["linux-x64", "linux-arm64", "linux-musl-x64", "linux-musl-arm64"], rows.Select(row => row[0]).Distinct());
        bool same = rows.Where(row => row[0] == "linux-x64").All(row => VersionOf(row[1]) == row[2]);

        (int code, string said) = await Workshop.TryLineAsync(Repository.Root, "eng/native --rid linux-x64 --verify");

        Assert.Equal(same ? 0 : 1, code);
        Assert.Contains(same ? "== verified: " : ", and a release has ", said, StringComparison.Ordinal);
    }

    private static string VersionOf(string package)
    {
        using Process query = Process.Start(new ProcessStartInfo("dpkg-query", ["--show", "--showformat", "${Version}", package])
        {
            RedirectStandardOutput = true,
            RedirectStandardError = true,
        })!;
        return query.StandardOutput.ReadToEnd();
    }
}

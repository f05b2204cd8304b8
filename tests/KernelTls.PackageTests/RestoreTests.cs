using KernelTls.Tests;

namespace KernelTls.PackageTests;

/// <summary>Tests the build of the repository in other places: below many package sources, and in a clone with a known address.</summary>
public sealed class RestoreTests : IDisposable
{
    private const string Address = "https://github.com/example/kerneltls";

    private static readonly string[] s_shared =
        ["Directory.Build.props", "Directory.Packages.props", "global.json", "src/Directory.Build.props", "src/Directory.Build.targets"];

    private readonly TemporaryDirectory _directory = new();

    public void Dispose() => _directory.Dispose();

    /// <summary>
    /// Reproduces crank's agent, which writes a NuGet.config with nine sources above the sources that it received. The
    /// machine has the project's only package since it built this test, and nothing is audited, so no source is queried.
    /// </summary>
    [Fact]
    public async Task Several_package_sources_above_a_clone_are_no_error()
    {
        string[] sources = [.. Enumerable.Range(1, 9).Select(i => $"""    <add key="source{i}" value="https://source{i}.invalid/v3/index.json" />""")];
        File.WriteAllText(_directory["NuGet.config"], $"""
            <configuration>
              <packageSources>
                <clear />
            {string.Join(Environment.NewLine, sources)}
              </packageSources>
            </configuration>
            """);
        string clone = Copy("src/KernelTls/KernelTls.csproj", "src/KernelTls.Analyzers/KernelTls.Analyzers.csproj");

        string said = await Workshop.RunAsync(clone, "dotnet", "restore", "src/KernelTls", "-p:NuGetAudit=false", "--disable-build-servers");

        Assert.DoesNotContain("warning ", said, StringComparison.Ordinal);
        Assert.True(File.Exists(Path.Combine(clone, "artifacts", "obj", "KernelTls", "project.assets.json")), said);
    }

    [Theory]
    [InlineData(false)]
    [InlineData(true)]
    public async Task Symbols_refer_to_the_sources_of_a_repository_whose_address_is_given(bool isGiven)
    {
        string clone = Copy("src/KernelTls/KernelTls.csproj", "src/KernelTls.Analyzers/KernelTls.Analyzers.csproj");
        await Workshop.RunAsync(clone, "git", "init", "--quiet");
        await Workshop.RunAsync(clone, "git", "remote", "add", "origin", Address + ".git");
        await Workshop.RunAsync(clone, "git", "add", "--all");
        await Workshop.RunAsync(clone, "git", "-c", "user.name=test", "-c", "user.email=test@example.test", "commit", "--quiet", "--message", "All");
        string commit = (await Workshop.RunAsync(clone, "git", "rev-parse", "HEAD")).Trim();

        string[] address = isGiven ? [$"-property:RepositoryUrl={Address}"] : [];
        await Workshop.RunAsync(
            clone, "dotnet", ["build", "src/KernelTls", "-target:PrepareForBuild;GenerateSourceLinkFile", "-property:Configuration=Release", "-property:NuGetAudit=false", .. address]);

        string[] links = Directory.GetFiles(Path.Combine(clone, "artifacts", "obj"), "*.sourcelink.json", SearchOption.AllDirectories);
        if (isGiven)
        {
            Assert.Contains($"https://raw.githubusercontent.com/example/kerneltls/{commit}/*", File.ReadAllText(Assert.Single(links)), StringComparison.Ordinal);
        }
        else
        {
            Assert.Empty(links);
        }
    }

    /// <summary>Returns the directory of a clone that contains only this project.</summary>
    private string Copy(params string[] projects)
    {
        string clone = _directory["clone"];
        foreach (string path in s_shared.Concat(projects))
        {
            string target = Path.Combine(clone, path);
            Directory.CreateDirectory(Path.GetDirectoryName(target)!);
            File.Copy(Path.Combine(Repository.Root, path), target);
        }

        return clone;
    }
}

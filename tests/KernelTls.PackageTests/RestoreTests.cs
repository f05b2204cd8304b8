using KernelTls.Tests;

namespace KernelTls.PackageTests;

/// <summary>Tests the repository on a machine with package sources beyond those of this repository.</summary>
public sealed class RestoreTests : IDisposable
{
    private static readonly string[] s_shared =
        ["Directory.Build.props", "Directory.Packages.props", "global.json", "src/Directory.Build.props", "src/Directory.Build.targets"];

    private readonly TemporaryDirectory _directory = new();

    public void Dispose() => _directory.Dispose();

    /// <summary>
    /// Reproduces crank's agent, which writes a NuGet.config with nine sources above the sources that it received. The
    /// project needs no package and nothing is audited, so no source is queried.
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
        string clone = Copy("src/KernelTls/KernelTls.csproj");

        string said = await Workshop.RunAsync(clone, "dotnet", "restore", "src/KernelTls", "-p:NuGetAudit=false", "--disable-build-servers");

        Assert.DoesNotContain("warning ", said, StringComparison.Ordinal);
        Assert.True(File.Exists(Path.Combine(clone, "artifacts", "obj", "KernelTls", "project.assets.json")), said);
    }

    /// <summary>Returns the directory of a clone that contains only this project.</summary>
    private string Copy(string project)
    {
        string clone = _directory["clone"];
        foreach (string path in s_shared.Append(project))
        {
            string target = Path.Combine(clone, path);
            Directory.CreateDirectory(Path.GetDirectoryName(target)!);
            File.Copy(Path.Combine(Repository.Root, path), target);
        }

        return clone;
    }
}

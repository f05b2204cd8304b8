using System.Runtime.InteropServices;
using System.Text.Json;
using KernelTls.Tests;

namespace KernelTls.PackageTests;

/// <summary>
/// Tests the newest servicing release of each .NET that this library supports, from the machine's package sources: the
/// private members exist and behave as expected. If the sources do not respond, the failure says so.
/// </summary>
[Trait("loop", "outer")]
public class ServicingTests
{
    private static readonly string s_rid = RuntimeInformation.ProcessArchitecture == Architecture.Arm64 ? "linux-arm64" : "linux-x64";
    private static readonly string s_runtime = $"Microsoft.NETCore.App.Runtime.{s_rid}";
    private static readonly string s_aspNetCore = $"Microsoft.AspNetCore.App.Runtime.{s_rid}";

    [Theory]
    [InlineData(10)]
    [InlineData(11)]
    public async Task The_newest_servicing_release_has_what_this_library_uses(int major)
    {
        using TemporaryDirectory directory = new();
        Version newest = Newest(major, await VersionsAsync(directory.FullName, s_runtime));
        Version aspNetCore = Newest(major, await VersionsAsync(directory.FullName, s_aspNetCore));
        string root = directory["dotnet"];
        await InstallAsync(directory.FullName, root, newest, aspNetCore);

        await RunAsync(root, newest, "KernelTls.UnitTests", "*.RuntimeCanaryTests", "*.PlatformTests");
        await RunAsync(root, newest, "KernelTls.AspNetCore.Tests", "*.KestrelInternalsTests", "*.KestrelCanaryTests", "*.ReusedStreamTests");
    }

    private static Version Newest(int major, IReadOnlyCollection<Version> versions)
    {
        Version[] fitting = [.. versions.Where(v => v.Major == major && v.Minor == 0)];
        Assert.True(fitting.Length != 0, $"The package sources know no release of .NET {major}: {string.Join(", ", versions)}");
        return fitting.Max()!;
    }

    /// <summary>Returns the released versions.</summary>
    private static async Task<Version[]> VersionsAsync(string directory, string package)
    {
        (int code, string said) = await Workshop.TryAsync(
            directory, "dotnet", "package", "search", package, "--exact-match", "--format", "json");
        Assert.True(code == 0, $"The package sources do not answer; of the runtime this says nothing: {said}");
        using JsonDocument json = JsonDocument.Parse(said);
        return
        [
            .. from result in json.RootElement.GetProperty("searchResult").EnumerateArray()
               from found in result.GetProperty("packages").EnumerateArray()
               let version = Version.TryParse(found.GetProperty("version").GetString(), out Version? v) ? v : null
               where version is not null
               select version,
        ];
    }

    /// <summary>Lays the packages out like an installation, around this machine's own muxer.</summary>
    private static async Task InstallAsync(string directory, string root, Version runtime, Version aspNetCore)
    {
        string project = Path.Combine(directory, "runtime.proj");
        await File.WriteAllTextAsync(project, $"""
            <Project Sdk="Microsoft.NET.Sdk">
              <PropertyGroup><TargetFramework>net10.0</TargetFramework></PropertyGroup>
              <ItemGroup>
                <PackageDownload Include="{s_runtime}" Version="[{runtime}]" />
                <PackageDownload Include="{s_aspNetCore}" Version="[{aspNetCore}]" />
              </ItemGroup>
            </Project>
            """);

        // Downloaded packages are kept.
        string packages = Path.Combine(Repository.Consumers, ".packages");
        (int code, string said) = await Workshop.TryAsync(directory, "dotnet", "restore", project, "--packages", packages);
        Assert.True(code == 0, $"The package sources do not serve {runtime}; of the runtime this says nothing: {said}");

        string shared = Lay(s_runtime, "Microsoft.NETCore.App", runtime);
        Lay(s_aspNetCore, "Microsoft.AspNetCore.App", aspNetCore);
        string resolver = Directory.CreateDirectory(Path.Combine(root, "host", "fxr", $"{runtime}")).FullName;
        File.Copy(Path.Combine(shared, "libhostfxr.so"), Path.Combine(resolver, "libhostfxr.so"));
        string muxer = Path.GetFullPath(Path.Combine(RuntimeEnvironment.GetRuntimeDirectory(), "..", "..", "..", "dotnet"));
        File.Copy(muxer, Path.Combine(root, "dotnet"));

        string Lay(string package, string framework, Version version)
        {
            string target = Directory.CreateDirectory(Path.Combine(root, "shared", framework, $"{version}")).FullName;
            string unpacked = Path.Combine(packages, package.ToLowerInvariant(), $"{version}", "runtimes");
            foreach (string file in Directory.EnumerateFiles(unpacked, "*", SearchOption.AllDirectories).Where(f => !f.EndsWith(".xml", StringComparison.Ordinal)))
            {
                File.Copy(file, Path.Combine(target, Path.GetFileName(file)), overwrite: true);
            }

            return target;
        }
    }

    private static async Task RunAsync(string root, Version runtime, string project, params string[] classes)
    {
        string program = Repository.Built(project);
        Assert.True(File.Exists(program), $"{program} is not there: build it first, as eng/test does.");
        using Application tests = Application.Start(
            Path.Combine(root, "dotnet"),
            root,
            [("DOTNET_ROOT", root), ("DOTNET_ROLL_FORWARD", "LatestMajor"), ("KERNELTLS_MODES", "Stock,DirectOpenSsl")],
            [program, "-noColor", .. classes.SelectMany(c => new[] { "-class", c })]);
        int code = await tests.ExitAsync(TimeSpan.FromMinutes(3));

        Assert.True(code == 0, $"{project} on .NET {runtime}: {tests.Said}");
        Assert.Contains($".NET {runtime})", tests.Said, StringComparison.Ordinal);
        Assert.Contains("Failed: 0", tests.Said, StringComparison.Ordinal);
    }
}

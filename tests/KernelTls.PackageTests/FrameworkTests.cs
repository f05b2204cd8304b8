using System.Text.RegularExpressions;
using KernelTls.Tests;

namespace KernelTls.PackageTests;

/// <summary>Tests projects for a .NET that is older than this library: NuGet says so in one sentence, and nothing else goes wrong.</summary>
public partial class FrameworkTests(Workshop workshop)
{
    [Theory]
    [InlineData("KernelTls", "net8.0")]
    [InlineData("KernelTls.AspNetCore", "net8.0")]
    [InlineData("KernelTls.AspNetCore", "net9.0")]
    [InlineData("KernelTls.Weave", "net8.0")]
    public async Task An_older_framework_is_refused_when_the_packages_are_restored(string package, string framework)
    {
        using TemporaryDirectory directory = new();
        Directory.CreateDirectory(directory["old"]);
        File.WriteAllText(directory["old/old.csproj"], $"""
            <Project Sdk="Microsoft.NET.Sdk">
              <PropertyGroup>
                <TargetFramework>{framework}</TargetFramework>
                <OutputType>Exe</OutputType>
                <NuGetAudit>false</NuGetAudit>
                <DisableImplicitFrameworkReferences>true</DisableImplicitFrameworkReferences>
                <UseAppHost>false</UseAppHost>
              </PropertyGroup>
              <ItemGroup>
                <PackageReference Include="{package}" Version="0.*-*" />
                <KernelTlsWeave Include="All" />
              </ItemGroup>
            </Project>
            """);
        File.WriteAllText(directory["old/Program.cs"], "System.Console.WriteLine();");

        (int code, string said) = await workshop.TryBuildAsync(directory["old"]);

        Assert.NotEqual(0, code);
        string error = Assert.Single(Error().Matches(said).Select(m => m.Groups[1].Value).Distinct());
        Assert.StartsWith($"NU1202: Package {package} 0.1.0 is not compatible with {framework} ", error, StringComparison.Ordinal);
        Assert.EndsWith("supports: net10.0 (.NETCoreApp,Version=v10.0)", error, StringComparison.Ordinal);
    }

    [GeneratedRegex(@" error (\w+: .*?)(?: \[\S+\])?$", RegexOptions.Multiline)]
    private static partial Regex Error();
}

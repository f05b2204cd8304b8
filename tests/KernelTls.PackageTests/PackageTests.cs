using System.Formats.Tar;
using System.IO.Compression;
using System.Net.Security;
using System.Reflection.Metadata;
using System.Reflection.PortableExecutable;
using System.Text;
using System.Text.Json;
using System.Xml.Linq;
using KernelTls.Tests;

namespace KernelTls.PackageTests;

/// <summary>Tests the output of eng/pack.</summary>
public class PackageTests(Workshop workshop)
{
    // The machine types of precompiled images: https://github.com/dotnet/runtime/blob/main/docs/design/coreclr/botr/readytorun-format.md
    private const int CompiledForLinux = 0x7B79;

    private static readonly Guid s_embeddedSource = new("0e8a571b-6926-466e-b4ad-8ab04611f5fe");

    [Fact]
    public async Task A_package_has_its_documents_and_says_nothing_of_where_it_was_made()
    {
        string[] packages = Directory.GetFiles(await workshop.PackagesAsync(), "*.nupkg");

        Assert.Contains(packages, p => Path.GetFileName(p).StartsWith("KernelTls.0", StringComparison.Ordinal));
        Assert.Contains(packages, p => Path.GetFileName(p).StartsWith("KernelTls.AspNetCore.0", StringComparison.Ordinal));
        Assert.Contains(packages, p => Path.GetFileName(p).StartsWith("KernelTls.Tool.0", StringComparison.Ordinal));
        Assert.Contains(packages, p => Path.GetFileName(p).StartsWith("KernelTls.Weave.0", StringComparison.Ordinal));
        foreach (string path in packages)
        {
            using ZipArchive package = ZipFile.OpenRead(path);
            XElement metadata = XDocument.Load(package.Entries.Single(e => e.Name.EndsWith(".nuspec", StringComparison.Ordinal)).Open())
                .Root!.Elements().Single();
            string? Value(string name) => metadata.Elements().SingleOrDefault(e => e.Name.LocalName == name)?.Value;
            Assert.Equal("MIT", Value("license"));
            using StreamReader readme = new(Assert.IsType<ZipArchiveEntry>(package.GetEntry(Value("readme")!)).Open());
            Assert.DoesNotMatch(@"\]\((?!https://)", await readme.ReadToEndAsync()); // a package has no other files to link to
            Assert.NotNull(package.GetEntry(Value("icon")!));
            Assert.NotEqual("Package Description", Value("description"));
            Assert.Null(Value("repository"));
        }
    }

    /// <summary>The packages use internals of KernelTls. Another version may lack them, and the application would fail.</summary>
    [Theory]
    [InlineData("KernelTls.AspNetCore")]
    [InlineData("KernelTls.Weave")]
    public async Task The_other_packages_take_no_other_version_of_KernelTls_than_their_own(string name)
    {
        using ZipArchive package = await OpenAsync(name, "nupkg");
        XElement metadata = XDocument.Load(package.Entries.Single(e => e.Name.EndsWith(".nuspec", StringComparison.Ordinal)).Open())
            .Root!.Elements().Single();
        string version = metadata.Elements().Single(e => e.Name.LocalName == "version").Value;
        XElement dependency = Assert.Single(metadata.Descendants(), e => e.Name.LocalName == "dependency");

        Assert.Equal("KernelTls", dependency.Attribute("id")!.Value);
        Assert.Equal($"[{version}]", dependency.Attribute("version")!.Value);
    }

    /// <summary>The tool's package and the archive have the same bundle, complete and of one version.</summary>
    [Fact]
    public async Task The_bundle_is_complete()
    {
        string[] platforms = [.. Directory.GetDirectories(Repository.Shims, "linux-*").Select(d => Path.GetFileName(d)!)];
        using TemporaryDirectory directory = new();
        await using (FileStream archive = File.OpenRead(Assert.Single(Directory.GetFiles(await workshop.PackagesAsync(), "KernelTls.Bundle.0*.tar.gz"))))
        await using (GZipStream unzipped = new(archive, CompressionMode.Decompress))
        {
            await TarFile.ExtractToDirectoryAsync(unzipped, directory.FullName, overwriteFiles: false);
        }

        string[] files = [.. Directory.GetFiles(directory.FullName, "*", SearchOption.AllDirectories).Select(f => Path.GetRelativePath(directory.FullName, f)).Order(StringComparer.Ordinal)];
        Assert.Equal(
            [
                "KernelTls.AspNetCore.dll", "KernelTls.Hosting.dll", "KernelTls.StartupHook.dll", "KernelTls.dll",
                .. platforms.Select(p => $"runtimes/{p}/native/{Repository.Shim}").Order(StringComparer.Ordinal),
            ],
            files);
        Assert.Single(files.Where(f => f.EndsWith(".dll", StringComparison.Ordinal)).Select(f => System.Reflection.AssemblyName.GetAssemblyName(directory[f]).Version).Distinct());
        using ZipArchive package = await OpenAsync("KernelTls.Tool", "nupkg");
        Assert.All(files, f => Assert.Equal(
            File.ReadAllBytes(directory[f]), Bytes(package, Assert.Single(package.Entries, e => e.FullName.EndsWith($"/bundle/{f}", StringComparison.Ordinal)).FullName)));
    }

    [Fact]
    public async Task The_shim_is_there_for_every_platform_that_it_is_built_for()
    {
        string[] platforms = [.. Directory.GetDirectories(Repository.Shims, "linux-*").Select(d => Path.GetFileName(d)!)];
        using ZipArchive package = await OpenAsync("KernelTls", "nupkg");

        Assert.Equal(
            platforms.Select(p => $"runtimes/{p}/native/{Repository.Shim}").Order(StringComparer.Ordinal),
            package.Entries.Select(e => e.FullName).Where(n => n.Contains("/native/", StringComparison.Ordinal))
                .Order(StringComparer.Ordinal));
        foreach (string platform in platforms)
        {
            Assert.Equal(
                File.ReadAllBytes(Path.Combine(Repository.Shims, platform, Repository.Shim)),
                Bytes(package, $"runtimes/{platform}/native/{Repository.Shim}"));
        }
    }

    /// <summary>
    /// A package has the library in lib/, for compilers, the trimmer and other platforms, and the same library compiled ahead of time for
    /// each platform with a shim, in the format of each runtime's own libraries.
    /// </summary>
    [Theory]
    [InlineData("KernelTls")]
    [InlineData("KernelTls.AspNetCore")]
    public async Task The_library_is_compiled_ahead_of_time_for_every_platform_that_has_the_shim(string name)
    {
        string[] platforms = [.. Directory.GetDirectories(Repository.Shims, "linux-*").Select(d => Path.GetFileName(d)!)];
        string[] folders = [.. platforms.Select(p => $"runtimes/{p}/lib/net10.0/"), "runtimes/linux-x64/lib/net11.0/", "runtimes/linux-musl-x64/lib/net11.0/"];
        Dictionary<string, ushort> formats = new()
        {
            ["net10.0"] = FormatOf(File.ReadAllBytes(typeof(SslStream).Assembly.Location)),
            ["net11.0"] = FormatOf(File.ReadAllBytes(await LibraryOfNextRuntimeAsync("System.Net.Security.dll"))),
        };
        using ZipArchive package = await OpenAsync(name, "nupkg");
        using PEReader library = new([.. Bytes(package, $"lib/net10.0/{name}.dll")]);

        Assert.NotEqual(formats["net10.0"], formats["net11.0"]);
        Assert.Equal(0, library.PEHeaders.CorHeader!.ManagedNativeHeaderDirectory.Size);
        Assert.Equal(
            folders.Select(f => $"{f}{name}.dll").Order(StringComparer.Ordinal),
            package.Entries.Select(e => e.FullName).Where(n => n.StartsWith("runtimes/", StringComparison.Ordinal) && n.EndsWith(".dll", StringComparison.Ordinal))
                .Order(StringComparer.Ordinal));
        foreach (string folder in folders)
        {
            byte[] image = Bytes(package, $"{folder}{name}.dll");
            if (folder.StartsWith("runtimes/linux-musl-arm64/", StringComparison.Ordinal))
            {
                // The package sources do not have .NET for it. NuGet would take the library for linux-arm64.
                Assert.Equal(Bytes(package, $"lib/net10.0/{name}.dll"), image);
                continue;
            }

            using PEReader compiled = new([.. image]);
            Machine machine = folder.Contains("arm64", StringComparison.Ordinal) ? Machine.Arm64 : Machine.Amd64;
            Assert.Equal(formats[folder.Split('/')[3]], FormatOf(image));
            Assert.Equal((int)machine ^ CompiledForLinux, (int)compiled.PEHeaders.CoffHeader.Machine);
            Assert.Equal(IdentityOf(library), IdentityOf(compiled));
        }
    }

    /// <summary>
    /// NuGet chooses the code for .NET 11 for applications of .NET 11. There is none for linux-arm64, where they get the code for .NET 10,
    /// which the runtime rejects and compiles again.
    /// </summary>
    [Theory]
    [InlineData("net10.0", "net10.0")]
    [InlineData("net11.0", "net11.0")]
    public async Task An_application_gets_the_code_for_its_runtime(string target, string expected)
    {
        using TemporaryDirectory directory = new();
        string project = directory["app"];
        Directory.CreateDirectory(project);
        File.WriteAllText(Path.Combine(project, "app.csproj"), $"""
            <Project Sdk="Microsoft.NET.Sdk">
              <PropertyGroup>
                <TargetFramework>{target}</TargetFramework>
                <NETCoreAppMaximumVersion>11.0</NETCoreAppMaximumVersion>
                <DisableImplicitFrameworkReferences>true</DisableImplicitFrameworkReferences>
                <RuntimeIdentifiers>linux-x64;linux-musl-x64;linux-arm64;linux-musl-arm64</RuntimeIdentifiers>
                <UseAppHost>false</UseAppHost>
                <NuGetAudit>false</NuGetAudit>
              </PropertyGroup>
              <ItemGroup>
                <PackageReference Include="KernelTls" Version="0.*-*" />
              </ItemGroup>
            </Project>
            """);

        await workshop.BuildAsync(project, "--no-restore", "-target:Restore");

        using JsonDocument assets = JsonDocument.Parse(File.ReadAllText(Path.Combine(project, "obj", "project.assets.json")));
        string[] AssetsOf(string platform, string kind) =>
        [
            .. assets.RootElement.GetProperty("targets").GetProperty(target + platform).EnumerateObject().Single().Value.GetProperty(kind)
                .EnumerateObject().Select(a => a.Name).Where(n => n.EndsWith(".dll", StringComparison.Ordinal)).Order(StringComparer.Ordinal),
        ];
        string[] chosen =
        [
            "runtimes/linux-arm64/lib/net10.0/KernelTls.dll",
            "runtimes/linux-musl-arm64/lib/net10.0/KernelTls.dll",
            $"runtimes/linux-musl-x64/lib/{expected}/KernelTls.dll",
            $"runtimes/linux-x64/lib/{expected}/KernelTls.dll",
        ];
        Assert.Equal(chosen, AssetsOf("", "runtimeTargets"));
        Assert.Equal<string[]>(chosen, [.. AssetsOf("/linux-arm64", "runtime"), .. AssetsOf("/linux-musl-arm64", "runtime"), .. AssetsOf("/linux-musl-x64", "runtime"), .. AssetsOf("/linux-x64", "runtime")]);
    }

    [Theory]
    [InlineData("KernelTls", "lib")]
    [InlineData("KernelTls.AspNetCore", "lib")]
    [InlineData("KernelTls.Weave", "tasks")]
    public async Task The_library_is_the_one_under_test_and_its_symbols_have_the_sources(string name, string folder)
    {
        using ZipArchive package = await OpenAsync(name, "nupkg");
        using ZipArchive symbols = await OpenAsync(name, "snupkg");
        byte[] library = Bytes(package, $"{folder}/net10.0/{name}.dll");
        byte[] database = Bytes(symbols, $"{folder}/net10.0/{name}.pdb");
        using PEReader image = new([.. library]);
        using MetadataReaderProvider provider = MetadataReaderProvider.FromPortablePdbImage([.. database]);
        MetadataReader reader = provider.GetMetadataReader();

        Assert.Equal(File.ReadAllBytes(Repository.Built(name)), library);
        Assert.NotNull(package.GetEntry($"{folder}/net10.0/{name}.xml"));
        DebugDirectoryEntry entry = image.ReadDebugDirectory().Single(e => e.Type == DebugDirectoryEntryType.CodeView);
        Assert.Equal(image.ReadCodeViewDebugDirectoryData(entry).Guid, new BlobContentId(reader.DebugMetadataHeader!.Id).Guid);
        Assert.NotEmpty(reader.Documents);
        foreach (DocumentHandle document in reader.Documents)
        {
            string path = reader.GetString(reader.GetDocument(document).Name);
            Assert.StartsWith("/_/", path, StringComparison.Ordinal);
            Assert.True(
                reader.GetCustomDebugInformation(document)
                    .Any(i => reader.GetGuid(reader.GetCustomDebugInformation(i).Kind) == s_embeddedSource),
                $"{path} is not in the symbols.");
        }
    }

    [Fact]
    [Trait("loop", "outer")]
    public async Task The_same_sources_in_another_folder_make_the_same_bytes()
    {
        string packages = await workshop.PackagesAsync();
        using TemporaryDirectory directory = new();
        Repository.CopySources(directory["elsewhere"]);

        await Workshop.RunAsync(directory.FullName, directory["elsewhere/eng/pack"], "--output", directory["again"]);

        string[] names = [.. Directory.GetFiles(packages).Select(p => Path.GetFileName(p)).Order(StringComparer.Ordinal)];
        Assert.Equal(names, Directory.GetFiles(directory["again"]).Select(p => Path.GetFileName(p)).Order(StringComparer.Ordinal));
        Assert.All(
            names, n => Assert.Equal(File.ReadAllBytes(Path.Combine(packages, n)), File.ReadAllBytes(Path.Combine(directory["again"], n))));
    }

    [Fact]
    public async Task Without_the_shim_of_a_platform_there_is_no_package()
    {
        await workshop.PackagesAsync();
        using TemporaryDirectory directory = new();
        foreach (string platform in (string[])["linux-x64", "linux-arm64"])
        {
            Directory.CreateDirectory(directory[platform]);
            File.Copy(Path.Combine(Repository.Shims, platform, Repository.Shim), Path.Combine(directory[platform], Repository.Shim));
        }

        (int code, string said) = await Workshop.TryAsync(
            Repository.Root, "dotnet", "pack", "src/KernelTls", "--configuration", "Release", "--no-build",
            "--output", directory["packages"], $"-p:NativeArtifacts={directory.FullName}/");

        Assert.Equal(1, code);
        Assert.Contains(
            $"{directory.FullName}/linux-musl-x64/{Repository.Shim} is missing. Build it with eng/native --rid all.", said, StringComparison.Ordinal);
        Assert.False(Directory.Exists(directory["packages"]) && Directory.GetFiles(directory["packages"]).Length > 0);
    }

    [Theory]
    [InlineData("--output")]
    [InlineData("anything")]
    public async Task A_command_line_that_is_none_ends_with_2(string argument) =>
        Assert.Equal(2, (await Workshop.TryAsync(Repository.Root, Repository.Pack, argument)).Code);

    private async Task<ZipArchive> OpenAsync(string name, string kind) =>
        ZipFile.OpenRead(Assert.Single(Directory.GetFiles(await workshop.PackagesAsync(), $"{name}.0*.{kind}")));

    /// <summary>Returns the identity of a compilation (MVID). The same sources have the same one.</summary>
    private static Guid IdentityOf(PEReader image)
    {
        MetadataReader reader = image.GetMetadataReader();
        return reader.GetGuid(reader.GetModuleDefinition().Mvid);
    }

    /// <summary>
    /// Returns the major version of the format of an image's compiled code. A runtime rejects an image with another one.
    /// </summary>
    private static ushort FormatOf(byte[] image)
    {
        using PEReader reader = new([.. image]);
        DirectoryEntry header = reader.PEHeaders.CorHeader!.ManagedNativeHeaderDirectory;
        Assert.NotEqual(0, header.Size);
        BlobReader blob = reader.GetSectionData(header.RelativeVirtualAddress).GetReader();
        Assert.Equal("RTR\0", Encoding.ASCII.GetString(blob.ReadBytes(4)));
        return blob.ReadUInt16();
    }

    /// <summary>Returns the path of a library of the newest runtime that the lab has.</summary>
    private static async Task<string> LibraryOfNextRuntimeAsync(string name)
    {
        string root = (await Workshop.RunAsync(Repository.Root, Repository.Lab, "--runtime-root", "11")).Trim().Split('\n')[^1];
        return Assert.Single(Directory.GetFiles(Path.Combine(root, "shared", "Microsoft.NETCore.App"), name, SearchOption.AllDirectories));
    }

    private static byte[] Bytes(ZipArchive package, string name)
    {
        using MemoryStream bytes = new();
        using Stream entry = Assert.IsType<ZipArchiveEntry>(package.GetEntry(name)).Open();
        entry.CopyTo(bytes);
        return bytes.ToArray();
    }

    /// <summary>Copies everything except the build output and the repository's history.</summary>
}

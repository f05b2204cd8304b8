using KernelTls.Tests;

namespace KernelTls.Weave.Tests;

/// <summary>
/// Tests the task with paths as projects and MSBuild on Windows write them. On other systems MSBuild adapts the separators of items, and leaves
/// those of their metadata.
/// </summary>
public sealed class WindowsPathTests : IDisposable
{
    private const string UsesStream = "public static class Sample { public static object Run(Stream s) => new SslStream(s); }";

    private readonly TemporaryDirectory _directory = new();
    private readonly Build _build = new();

    public void Dispose() => _directory.Dispose();

    [Theory]
    [InlineData(@"C:\Users\me\.nuget\packages\npgsql\10.0.0\lib\net10.0\Npgsql.dll", "Npgsql.dll", "Npgsql")]
    [InlineData(@"C:/src/My.Library/My.Library.csproj", "My.Library.csproj", "My.Library")]
    [InlineData(@"\\server\share\packages/One.dll", "One.dll", "One")]
    [InlineData(@"..\lib\One.dll", "One.dll", "One")]
    [InlineData("/root/.nuget/packages/One.dll", "One.dll", "One")]
    [InlineData("One.dll", "One.dll", "One")]
    [InlineData("", "", "")]
    public void The_name_of_a_file_is_found_behind_either_separator(string path, string file, string name)
    {
        Assert.Equal(file, ItemPath.FileOf(path));
        Assert.Equal(name, ItemPath.NameOf(path));
    }

    [Fact]
    public void A_file_for_one_platform_goes_into_its_folder()
    {
        string path = Compile("One");
        WeavePackages task = Task("One");
        task.Assemblies = [Build.Item(Compiled.LibraryPath)];
        task.PlatformFiles = [Build.Item(path, ("DestinationSubPath", @"runtimes\unix\lib\One.dll"))];

        Assert.True(task.Execute(), string.Join('\n', _build.Errors));

        Assert.Equal(
            Path.Combine(_directory["obj"], "runtimes", "unix", "lib", "One.dll"), Path.GetFullPath(Assert.Single(task.WovenPlatformFiles).ItemSpec));
        Assert.True(AssemblyWeaver.IsWoven(_directory["obj/runtimes/unix/lib/One.dll"]));
    }

    [Theory]
    [InlineData("HintPath", @"..\lib\Two.dll")]
    [InlineData("HintPath", @"C:\lib\Two.dll")]
    public void A_reference_is_known_by_the_file_that_it_names(string metadata, string path)
    {
        WeavePackages task = Task("Two");
        task.Assemblies = [Build.Item(Compiled.LibraryPath)];
        task.References = [Build.Item("Any", (metadata, path))];

        Assert.True(task.Execute(), string.Join('\n', _build.Errors));

        Assert.Empty(_build.Warnings);
    }

    [Fact]
    public void A_project_is_known_by_its_file()
    {
        WeavePackages task = Task("Lib");
        task.Assemblies = [Build.Item(Compiled.LibraryPath)];
        task.Projects = [Build.Item(@"C:\src\Lib\Lib.csproj")];

        Assert.True(task.Execute(), string.Join('\n', _build.Errors));

        Assert.StartsWith("KTLSW006: Lib is another project", Assert.Single(_build.Warnings), StringComparison.Ordinal);
    }

    [Fact]
    public void A_reference_s_copy_goes_into_its_folder()
    {
        WeaveReferences task = new()
        {
            BuildEngine = _build,
            Wanted = [Build.Item("One")],
            ProjectAssembly = "App",
            References = [Build.Item(Compiled.LibraryPath)],
            Files = [Build.Item(Compile("One"), ("DestinationSubDirectory", @"plugins\"))],
            OutputDirectory = _directory["obj"],
        };

        Assert.True(task.Execute(), string.Join('\n', _build.Errors));

        Assert.Equal(Path.Combine(_directory["obj"], "plugins", "One.dll"), Path.GetFullPath(Assert.Single(task.WovenFiles).ItemSpec));
    }

    private string Compile(string name)
    {
        string path = _directory[$"{name}.dll"];
        File.WriteAllBytes(path, Compiled.From(UsesStream, name).Image);
        return path;
    }

    private WeavePackages Task(string wanted) => new()
    {
        BuildEngine = _build,
        Wanted = [Build.Item(wanted)],
        ProjectAssembly = "App",
        OutputDirectory = _directory["obj"],
    };
}

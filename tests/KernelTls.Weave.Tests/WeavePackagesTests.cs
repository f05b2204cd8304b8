using KernelTls.Tests;
using Microsoft.Build.Framework;
using Microsoft.Build.Utilities;

namespace KernelTls.Weave.Tests;

/// <summary>Tests the task: the assemblies that it weaves, those that it skips in the next build, and its messages.</summary>
public sealed class WeavePackagesTests : IDisposable
{
    private const string UsesStream = "public static class Sample { public static object Run(Stream s) => new SslStream(s); }";
    private const string UsesNothing = "public static class Sample { public static object Run() => null; }";

    private readonly TemporaryDirectory _directory = new();
    private readonly List<ITaskItem> _assemblies = [Build.Item(Compiled.LibraryPath)];
    private readonly Build _build = new();

    public void Dispose() => _directory.Dispose();

    [Fact]
    public void A_named_assembly_is_woven_in_a_copy_that_keeps_its_metadata()
    {
        Add("One", UsesStream);
        Add("Two", UsesStream);

        WeavePackages task = Run(Build.Item("one"));

        ITaskItem copy = Assert.Single(task.WovenAssemblies);
        Assert.Equal(_directory["obj/One.dll"], copy.ItemSpec);
        Assert.Equal("OnePackage", copy.GetMetadata("NuGetPackageId"));
        Assert.Equal(_directory["One.dll"], Assert.Single(task.Replaced).ItemSpec);
        Assert.True(AssemblyWeaver.IsWoven(copy.ItemSpec));
        Assert.False(AssemblyWeaver.IsWoven(_directory["One.dll"]));
        Assert.Equal(["KernelTls.Weave: One: 1 place", "    Sample.Run+0x1: new SslStream"], _build.Messages);
        Assert.Empty(_build.Warnings);
    }

    [Fact]
    public void All_but_the_exceptions_are_woven_and_what_has_nothing_to_weave_is_no_news()
    {
        Add("One", UsesStream);
        Add("Two", UsesStream);
        Add("Three", UsesNothing);
        File.Copy("/bin/sh", _directory["native.dll"]);
        _assemblies.Add(Build.Item(_directory["native.dll"], ("AssetType", "native")));

        WeavePackages task = Run(Build.Item("All", ("Except", "Two; other")));

        Assert.Equal([_directory["obj/One.dll"]], task.WovenAssemblies.Select(a => a.ItemSpec));
        Assert.StartsWith("KTLSW005: KernelTlsWeave names 'other'", Assert.Single(_build.Warnings), StringComparison.Ordinal);
    }

    [Fact]
    public void What_is_left_as_it_is_says_so_every_time()
    {
        Add("One", UsesStream);
        File.WriteAllBytes(_directory["One.dll"], Compiled.From(UsesStream, "One").Weave().Image!);
        Add("Two", UsesNothing);
        File.Copy("/bin/sh", _directory["native.dll"]);
        _assemblies.Add(Build.Item(_directory["native.dll"], ("AssetType", "native")));
        string[] expected =
        [
            "KernelTls.Weave: One: woven already, left as it is",
            "KernelTls.Weave: Two: nothing to weave",
            "KernelTls.Weave: native: not woven, because it is not a managed assembly",
        ];

        Assert.Empty(Run(Build.Item("All")).WovenAssemblies);
        Assert.Equal(expected, _build.Messages);
        _build.Messages.Clear();
        Assert.Empty(Run(Build.Item("All")).WovenAssemblies);
        Assert.Equal(expected, _build.Messages);
        _build.Messages.Clear();
        Assert.Empty(Run(Build.Item("One")).WovenAssemblies);
        Assert.Equal(expected[..1], _build.Messages);
        Assert.Empty(_build.Warnings);
    }

    [Fact]
    public void Files_for_one_platform_keep_their_folder()
    {
        WeavePackages task = Run(new Selected([Build.Item("One")], [AddForPlatform("One", UsesStream)]));

        Assert.Equal(_directory["obj/runtimes/unix/lib/One.dll"], Assert.Single(task.WovenPlatformFiles).ItemSpec);
        Assert.Empty(task.WovenAssemblies);
    }

    /// <summary>Microsoft.Data.SqlClient has a file for each platform, and one that only throws.</summary>
    [Fact]
    public void A_file_with_nothing_beside_one_for_a_platform_is_no_warning()
    {
        ITaskItem file = AddForPlatform("Two", UsesStream);
        Add("Two", UsesNothing);

        WeavePackages task = Run(new Selected([Build.Item("Two")], [file]));

        Assert.Single(task.WovenPlatformFiles);
        Assert.Empty(_build.Warnings);
    }

    [Fact]
    public void The_second_time_nothing_is_written_and_the_same_is_said()
    {
        Add("One", UsesStream);
        Add("Two", UsesNothing);
        ITaskItem[] wanted = [Build.Item("One"), Build.Item("Two"), Build.Item("Thre")];
        Run(new Selected(wanted));
        Dictionary<string, DateTime> before = Times();
        string[] warnings = [.. _build.Warnings];
        _build.Warnings.Clear();

        WeavePackages task = Run(new Selected(wanted));

        Assert.Equal(before, Times());
        Assert.Single(task.WovenAssemblies);
        Assert.Contains("KernelTls.Weave: One: 1 place, woven before", _build.Messages);
        Assert.Equal(2, warnings.Length);
        Assert.Equal(warnings, _build.Warnings);
    }

    [Theory]
    [InlineData("input")]
    [InlineData("copy")]
    [InlineData("copy gone")]
    [InlineData("cache")]
    public void What_has_changed_is_woven_again(string what)
    {
        Add("One", UsesStream);
        Run(Build.Item("One"));
        byte[] woven = File.ReadAllBytes(_directory["obj/One.dll"]);
        switch (what)
        {
            case "input":
                File.WriteAllBytes(_directory["One.dll"], Compiled.From(UsesStream + " public class Another { }", "One").Image);
                break;
            case "copy":
                File.WriteAllBytes(_directory["obj/One.dll"], [1, 2, 3]);
                break;
            case "copy gone":
                File.Delete(_directory["obj/One.dll"]);
                break;
            case "cache":
                File.WriteAllText(_directory["obj/woven.json"], "{ broken");
                break;
        }

        _build.Messages.Clear();
        Run(Build.Item("One"));

        Assert.Contains("KernelTls.Weave: One: 1 place", _build.Messages);
        Assert.Equal(what != "input", woven.AsSpan().SequenceEqual(File.ReadAllBytes(_directory["obj/One.dll"])));
    }

    [Fact]
    public void A_name_that_no_package_has_is_a_warning_with_those_that_there_are()
    {
        Add("One", UsesStream);
        Add("Two", UsesNothing);

        Run(Build.Item("Oen"));

        Assert.Equal(
            ["KTLSW005: KernelTlsWeave names 'Oen', and no package of App has such an assembly. Expected All, App, or the name of an assembly "
                + "without .dll; those with something to weave are One."],
            _build.Warnings);
    }

    [Theory]
    [InlineData("true", false)]
    [InlineData("False", false)]
    [InlineData("yes", true)]
    public void A_value_of_ExpectNoPadding_that_is_neither_true_nor_false_is_a_warning(string value, bool warns)
    {
        Add("One", UsesStream);

        Run(Build.Item("One", ("ExpectNoPadding", value)));

        Assert.Equal(
            warns ? ["KTLSW007: ExpectNoPadding=\"yes\" of KernelTlsWeave 'One' has no effect. Expected true or false."] : [],
            _build.Warnings);
    }

    [Fact]
    public void A_project_is_pointed_to_its_own_item()
    {
        Run(Build.Item("Lib"));

        Assert.Equal(
            ["KTLSW006: Lib is another project, so this item does nothing. That project weaves its assembly if it has <KernelTlsWeave Include=\"$(AssemblyName)\" /> itself."],
            _build.Warnings);
    }

    [Fact]
    public void A_named_assembly_with_nothing_to_weave_is_a_warning()
    {
        Add("Two", UsesNothing);

        Run(Build.Item("Two"));

        Assert.StartsWith("KTLSW004: There is nothing to weave in Two", Assert.Single(_build.Warnings), StringComparison.Ordinal);
    }

    [Fact]
    public void An_assembly_that_cannot_be_woven_is_a_warning_with_the_reason_every_time()
    {
        string http = typeof(System.Net.Mail.SmtpClient).Assembly.Location;
        _assemblies.Add(Build.Item(http));

        Run(Build.Item("System.Net.Mail"));
        Run(Build.Item("System.Net.Mail"));

        Assert.Equal(2, _build.Warnings.Count);
        Assert.All(_build.Warnings, w => Assert.Equal(
            $"KTLSW002: System.Net.Mail cannot be woven, because it was compiled to native code (ReadyToRun), which weaving would contradict: {http}. Its TLS connections stay with SslStream.",
            w));
    }

    [Fact]
    public void Without_the_library_there_is_an_error()
    {
        _assemblies.Clear();
        Add("One", UsesStream);

        Assert.False(Task(new Selected([Build.Item("One")])).Execute());

        Assert.StartsWith("KTLSW001: KernelTls is not among the assemblies of App", Assert.Single(_build.Errors), StringComparison.Ordinal);
    }

    [Fact]
    public void The_projects_own_assembly_is_woven_in_its_place_and_once()
    {
        File.WriteAllBytes(_directory["App.dll"], Compiled.From(UsesStream, "App").Image);

        Assert.True(Own("App").Execute());
        byte[] woven = File.ReadAllBytes(_directory["App.dll"]);
        Assert.True(AssemblyWeaver.IsWoven(_directory["App.dll"]));
        Assert.Equal("KernelTls.Weave: App: 1 place", _build.Messages[0]);
        _build.Messages.Clear();
        Assert.True(Own("App").Execute());
        Assert.Equal(["KernelTls.Weave: App: woven already, left as it is"], _build.Messages);

        Assert.Equal(woven, File.ReadAllBytes(_directory["App.dll"]));
        Assert.Empty(_build.Warnings);
    }

    private WeaveProject Own(string name) => new()
    {
        BuildEngine = _build,
        Wanted = [Build.Item(name)],
        ProjectAssembly = "App",
        Assembly = _directory["App.dll"],
        References = [.. _assemblies],
    };

    private void Add(string name, string source)
    {
        string path = _directory[$"{name}.dll"];
        File.WriteAllBytes(path, Compiled.From(source, Path.GetFileName(name)).Image);
        _assemblies.Add(Build.Item(path, ("NuGetPackageId", $"{name}Package")));
    }

    private WeavePackages Run(ITaskItem wanted) => Run(new Selected([wanted]));

    /// <summary>Compiles an assembly for one platform, and returns its file.</summary>
    private ITaskItem AddForPlatform(string name, string source)
    {
        string path = $"runtimes/unix/lib/{name}";
        Directory.CreateDirectory(_directory["runtimes/unix/lib"]);
        Add(path, source);
        ITaskItem file = _assemblies[^1];
        _assemblies.Remove(file);
        file.SetMetadata("DestinationSubPath", $"{path}.dll");
        return file;
    }

    private WeavePackages Run(Selected selected)
    {
        WeavePackages task = Task(selected);
        Assert.True(task.Execute(), string.Join('\n', _build.Errors));
        return task;
    }

    private WeavePackages Task(Selected selected) => new()
    {
        BuildEngine = _build,
        Wanted = selected.Wanted,
        ProjectAssembly = "App",
        Assemblies = [.. _assemblies],
        PlatformFiles = selected.PlatformFiles ?? [],
        Projects = [Build.Item("../Lib/Lib.csproj")],
        OutputDirectory = _directory["obj"],
    };

    private Dictionary<string, DateTime> Times() =>
        Directory.GetFiles(_directory["obj"]).ToDictionary(f => f, File.GetLastWriteTimeUtc);

    private sealed record Selected(ITaskItem[] Wanted, ITaskItem[]? PlatformFiles = null);
}

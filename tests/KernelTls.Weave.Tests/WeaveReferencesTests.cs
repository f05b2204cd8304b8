using KernelTls.Tests;
using Microsoft.Build.Framework;
using Microsoft.Build.Utilities;

namespace KernelTls.Weave.Tests;

/// <summary>Tests the task for references to files and projects.</summary>
public sealed class WeaveReferencesTests : IDisposable
{
    private const string UsesStream = "public static class Sample { public static object Run(Stream s) => new SslStream(s); }";

    private readonly TemporaryDirectory _directory = new();
    private readonly Build _build = new();

    public void Dispose() => _directory.Dispose();

    [Theory]
    [InlineData("One")]
    [InlineData("All")]
    public void A_referenced_file_is_woven_in_a_copy_that_keeps_its_metadata(string wanted)
    {
        WeaveReferences task = Create([Build.Item(wanted)], files: [Assembly("One", ("Private", "true")), Assembly("Two", ("NuGetPackageId", "Two"))]);

        Assert.True(task.Execute());

        ITaskItem copy = Assert.Single(task.WovenFiles);
        Assert.Equal(_directory["obj/One.dll"], copy.ItemSpec);
        Assert.Equal("true", copy.GetMetadata("Private"));
        Assert.Equal(_directory["One.dll"], Assert.Single(task.Replaced).ItemSpec);
        Assert.True(AssemblyWeaver.IsWoven(copy.ItemSpec));
        Assert.Equal("KernelTls.Weave: One: 1 place", _build.Messages[0]);
        Assert.Empty(_build.Warnings);

        _build.Messages.Clear();
        Assert.True(Create([Build.Item(wanted)], files: [Build.Item(_directory["One.dll"])]).Execute());
        Assert.Equal("KernelTls.Weave: One: 1 place, woven before", _build.Messages[0]);
    }

    [Fact]
    public void A_reference_to_a_file_is_no_unknown_name()
    {
        WeavePackages task = new()
        {
            BuildEngine = _build,
            Wanted = [Build.Item("Plain"), Build.Item("Full"), Build.Item("File"), Build.Item("Wrong")],
            ProjectAssembly = "App",
            Assemblies = [Build.Item(Compiled.LibraryPath)],
            References =
            [
                Build.Item("Plain"), Build.Item("Full, Version=1.0.0.0"), Build.Item("Any", ("HintPath", "lib/File.dll")),
            ],
            OutputDirectory = _directory["obj"],
        };

        Assert.True(task.Execute());

        Assert.StartsWith("KTLSW005: KernelTlsWeave names 'Wrong'", Assert.Single(_build.Warnings), StringComparison.Ordinal);
    }

    [Theory]
    [InlineData(true, "All", null)]
    [InlineData(true, "Npgsql", null)]
    [InlineData(true, "Other", "KTLSW010: KernelTlsWeave of Lib names 'Npgsql', which has no effect: App ships the assemblies of packages. "
        + "Put <KernelTlsWeave Include=\"Npgsql\" /> into the project of App.")]
    [InlineData(true, null, "KTLSW010: KernelTlsWeave of Lib names 'Npgsql', ")]
    [InlineData(false, null, null)]
    public void An_item_of_a_library_project_is_a_warning_of_the_application_that_does_not_have_it(bool isApplication, string? wanted, string? warning)
    {
        WeaveReferences task = Create(wanted is null ? [] : [Build.Item(wanted)], projects: [Project("Lib", "lib;Npgsql", isWoven: true)]);
        task.IsApplication = isApplication;

        Assert.True(task.Execute());

        Assert.Equal(warning is null ? 0 : 1, _build.Warnings.Count);
        Assert.All(_build.Warnings, w => Assert.StartsWith(warning!, w, StringComparison.Ordinal));
    }

    [Theory]
    [InlineData("", false, true)]
    [InlineData("", true, false)]
    [InlineData("Lib", false, false)]
    public void A_project_that_All_does_not_include_is_a_warning(string except, bool isWoven, bool warns)
    {
        WeaveReferences task = Create([Build.Item("All", ("Except", except))], projects: [Project("Lib", "", isWoven)]);

        Assert.True(task.Execute());

        Assert.Equal(
            warns
                ? ["KTLSW011: All does not include Lib, which is another project and has something to weave: put "
                    + "<KernelTlsWeave Include=\"$(AssemblyName)\" /> into that project, or name it in Except."]
                : [],
            _build.Warnings);
    }

    private TaskItem Project(string name, string items, bool isWoven)
    {
        TaskItem project = Assembly(name, ("ReferenceSourceTarget", "ProjectReference"), ("KernelTlsWeave", items));
        if (isWoven)
        {
            File.WriteAllBytes(project.ItemSpec, Compiled.From(UsesStream, name).Weave().Image!);
        }

        return project;
    }

    private TaskItem Assembly(string name, params (string, string)[] metadata)
    {
        File.WriteAllBytes(_directory[$"{name}.dll"], Compiled.From(UsesStream, name).Image);
        return Build.Item(_directory[$"{name}.dll"], metadata);
    }

    private WeaveReferences Create(ITaskItem[] wanted, ITaskItem[]? files = null, ITaskItem[]? projects = null) => new()
    {
        BuildEngine = _build,
        Wanted = wanted,
        ProjectAssembly = "App",
        Files = files ?? [],
        References = [Build.Item(Compiled.LibraryPath), .. projects ?? []],
        IsApplication = true,
        OutputDirectory = _directory["obj"],
    };
}

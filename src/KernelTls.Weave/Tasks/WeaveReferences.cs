using Microsoft.Build.Framework;
using Microsoft.Build.Utilities;

namespace KernelTls.Weave;

/// <summary>
/// Weaves copies of the assemblies that a project references as files, and warns of items that have no effect on the projects that it
/// references.
/// </summary>
public sealed class WeaveReferences : WeaveTask
{
    private readonly List<ITaskItem> _replaced = [];

    /// <summary>Gets or sets the files that are copied beside the project's assembly.</summary>
    public ITaskItem[] Files { get; set; } = [];

    /// <summary>Gets or sets the resolved references: packages with the library, and projects with what they name themselves.</summary>
    public ITaskItem[] References { get; set; } = [];

    /// <summary>Gets or sets a value that indicates whether the project is a program, which ships what it references.</summary>
    public bool IsApplication { get; set; }

    /// <summary>Gets or sets the path of the library if it is not in a package.</summary>
    public string? Library { get; set; }

    /// <summary>Gets or sets the folder of the copies.</summary>
    [Required]
    public string OutputDirectory { get; set; } = "";

    /// <summary>Gets the items that the copies replace.</summary>
    [Output]
    public ITaskItem[] Replaced => [.. _replaced];

    /// <summary>Gets the copies, with the metadata of the files.</summary>
    [Output]
    public ITaskItem[] WovenFiles { get; private set; } = [];

    /// <summary>Gets the path of the file that stores the results.</summary>
    [Output]
    public string CacheFile => Path.Combine(OutputDirectory, "woven-references.json");

    /// <inheritdoc/>
    public override bool Execute()
    {
        Selection selection = new(Wanted);
        ITaskItem[] projects = [.. References.Where(IsProject)];
        if (IsApplication)
        {
            WarnOfLibraries(projects, selection);
        }

        string? library = string.IsNullOrEmpty(Library)
            ? References.FirstOrDefault(r => ItemPath.NameOf(r) == Replacements.Library)?.ItemSpec
            : Library;
        ITaskItem[] files = [.. Files.Where(f => IsFile(f) && selection.Includes(ItemPath.NameOf(f)))];

        // WeavePackages has reported that the library is missing.
        if (library is null || !File.Exists(library) || (files.Length == 0 && !selection.HasAll) || ReadReplacements(library) is not { } replacements)
        {
            return !Log.HasLoggedErrors;
        }

        Directory.CreateDirectory(OutputDirectory);
        WeaveCache cache = WeaveCache.Read(CacheFile, library);
        WovenFiles = [.. files.Select(f => Weave(f, selection, cache, replacements)).OfType<ITaskItem>()];
        cache.Save();
        if (selection.HasAll)
        {
            WarnOfProjects(projects, selection, replacements);
        }

        return !Log.HasLoggedErrors;
    }

    private TaskItem? Weave(ITaskItem item, Selection selection, WeaveCache cache, Replacements replacements)
    {
        string name = ItemPath.NameOf(item);
        string input = Path.GetFullPath(item.ItemSpec);
        string output = Path.Combine(OutputDirectory, ItemPath.ToSystem(item.GetMetadata("DestinationSubDirectory")), Path.GetFileName(input));
        WovenFile? file = cache.Find(input, output);
        bool isNew = file is null;
        if (file is null)
        {
            file = WeaveFile(input, output, replacements);
            cache.Add(file);
        }

        Report(name, file, isNew);
        if (selection.Names(name) && file.HasNothing)
        {
            WarnOfNothing(name);
        }

        if (file.OutputStamp is null)
        {
            return null;
        }

        TaskItem copy = new(output);
        item.CopyMetadataTo(copy);
        _replaced.Add(item);
        return copy;
    }

    /// <summary>Warns of the items of library projects that name packages: the application ships its own copies of these.</summary>
    private void WarnOfLibraries(ITaskItem[] projects, Selection selection)
    {
        foreach (ITaskItem project in projects)
        {
            string[] names = project.GetMetadata("KernelTlsWeave").Split(';', StringSplitOptions.RemoveEmptyEntries);
            foreach (string name in names.Where(n => !n.Equals(ItemPath.NameOf(project), StringComparison.OrdinalIgnoreCase)))
            {
                if (name == Selection.All ? !selection.HasAll : !selection.Includes(name))
                {
                    Warn(
                        "KTLSW010",
                        $"KernelTlsWeave of {ItemPath.NameOf(project)} names '{name}', which has no effect: {ProjectAssembly} ships the assemblies of packages. Put <KernelTlsWeave Include=\"{name}\" /> into the project of {ProjectAssembly}.");
                }
            }
        }
    }

    /// <summary>Warns of projects that <c>All</c> does not include.</summary>
    private void WarnOfProjects(ITaskItem[] projects, Selection selection, Replacements replacements)
    {
        foreach (ITaskItem project in projects.Where(p => selection.Includes(ItemPath.NameOf(p)) && File.Exists(p.ItemSpec)))
        {
            if (!AssemblyWeaver.IsWoven(project.ItemSpec) && AssemblyWeaver.HasPlaces(project.ItemSpec, replacements))
            {
                Warn(
                    "KTLSW011",
                    $"{Selection.All} does not include {ItemPath.NameOf(project)}, which is another project and has something to weave: put <KernelTlsWeave Include=\"$(AssemblyName)\" /> into that project, or name it in Except.");
            }
        }
    }

    private static bool IsProject(ITaskItem item) => item.GetMetadata("ReferenceSourceTarget") == "ProjectReference";

    private static bool IsFile(ITaskItem item) =>
        item.ItemSpec.EndsWith(".dll", StringComparison.OrdinalIgnoreCase)
        && item.GetMetadata("NuGetPackageId").Length == 0
        && !item.ItemSpec.EndsWith(".resources.dll", StringComparison.OrdinalIgnoreCase)
        && !IsProject(item);
}

using Microsoft.Build.Framework;
using Microsoft.Build.Utilities;

namespace KernelTls.Weave;

/// <summary>Weaves copies of the assemblies in a project's packages.</summary>
public sealed class WeavePackages : WeaveTask
{
    /// <summary>The metadata that KernelTls.Weave.targets passes on to the application.</summary>
    private const string NoPadding = "ExpectNoPadding";

    private readonly HashSet<string> _found = new(StringComparer.OrdinalIgnoreCase);
    private readonly Dictionary<string, bool> _hasNothing = new(StringComparer.OrdinalIgnoreCase);
    private readonly List<ITaskItem> _replaced = [];

    /// <summary>Gets or sets the assemblies of packages.</summary>
    [Required]
    public ITaskItem[] Assemblies { get; set; } = [];

    /// <summary>Gets or sets the files of packages that are for one platform. Native files are not changed.</summary>
    public ITaskItem[] PlatformFiles { get; set; } = [];

    /// <summary>Gets or sets the references to files, which <see cref="WeaveReferences"/> weaves.</summary>
    public ITaskItem[] References { get; set; } = [];

    /// <summary>Gets or sets the projects that this one references.</summary>
    public ITaskItem[] Projects { get; set; } = [];

    /// <summary>Gets or sets the path of the library if it is not in a package.</summary>
    public string? Library { get; set; }

    /// <summary>Gets or sets the folder of the copies.</summary>
    [Required]
    public string OutputDirectory { get; set; } = "";

    /// <summary>Gets the items that the copies replace.</summary>
    [Output]
    public ITaskItem[] Replaced => [.. _replaced];

    /// <summary>Gets the copies of <see cref="Assemblies"/>, with their metadata.</summary>
    [Output]
    public ITaskItem[] WovenAssemblies { get; private set; } = [];

    /// <summary>Gets the copies of <see cref="PlatformFiles"/>, with their metadata.</summary>
    [Output]
    public ITaskItem[] WovenPlatformFiles { get; private set; } = [];

    /// <summary>Gets the path of the file that stores the results.</summary>
    [Output]
    public string CacheFile => Path.Combine(OutputDirectory, "woven.json");

    /// <inheritdoc/>
    public override bool Execute()
    {
        string? library = Assemblies.FirstOrDefault(a => ItemPath.NameOf(a) == Replacements.Library)?.ItemSpec
            ?? (string.IsNullOrEmpty(Library) ? null : Library);
        Selection selection = new(Wanted);
        WarnOfMetadata();
        if (library is null || !File.Exists(library))
        {
            return ReadReplacements(null) is not null;
        }

        Directory.CreateDirectory(OutputDirectory);
        WeaveCache cache = WeaveCache.Read(CacheFile, library);
        Lazy<Replacements?> replacements = new(() => ReadReplacements(library));
        WovenAssemblies = Weave(Assemblies, selection, cache, replacements);
        WovenPlatformFiles = Weave(PlatformFiles, selection, cache, replacements);
        if (!Log.HasLoggedErrors)
        {
            cache.Save();
            WarnOfUnknown(selection, replacements);
            foreach ((string name, _) in _hasNothing.Where(pair => pair.Value))
            {
                WarnOfNothing(name);
            }
        }

        return !Log.HasLoggedErrors;
    }

    private ITaskItem[] Weave(ITaskItem[] items, Selection selection, WeaveCache cache, Lazy<Replacements?> replacements)
    {
        List<ITaskItem> woven = [];
        foreach (ITaskItem item in items)
        {
            string name = ItemPath.NameOf(item);
            if (!IsAssembly(item))
            {
                continue;
            }

            _found.Add(name);
            if (!selection.Includes(name))
            {
                continue;
            }

            string input = Path.GetFullPath(item.ItemSpec);
            string output = Path.Combine(
                OutputDirectory, item.GetMetadata("DestinationSubPath") is { Length: > 0 } path ? ItemPath.ToSystem(path) : Path.GetFileName(input));
            WovenFile? file = cache.Find(input, output);
            bool isNew = file is null;
            if (file is null)
            {
                if (replacements.Value is null)
                {
                    break;
                }

                file = WeaveFile(input, output, replacements.Value);
                cache.Add(file);
            }

            // With `All`, a file that is not an assembly causes no warning.
            bool isNamed = selection.Names(name);
            if (!isNamed && file.Refusal is { } refusal && IsNative(item))
            {
                LogMessage($"{name}: not woven, because {refusal}");
            }
            else
            {
                Report(name, file, isNew);
            }

            if (isNamed)
            {
                // An assembly may have a file for each platform, and one without content for all others.
                _hasNothing[name] = file.HasNothing && _hasNothing.GetValueOrDefault(name, true);
            }

            if (file.OutputStamp is not null)
            {
                TaskItem copy = new(output);
                item.CopyMetadataTo(copy);
                woven.Add(copy);
                _replaced.Add(item);
            }
        }

        return [.. woven];
    }

    private void WarnOfMetadata()
    {
        foreach (ITaskItem item in Wanted.Where(i => i.GetMetadata(NoPadding) is { Length: > 0 } value && !bool.TryParse(value, out _)))
        {
            Warn("KTLSW007", $"{NoPadding}=\"{item.GetMetadata(NoPadding)}\" of KernelTlsWeave '{item.ItemSpec}' has no effect. Expected true or false.");
        }
    }

    private void WarnOfUnknown(Selection selection, Lazy<Replacements?> replacements)
    {
        foreach (string name in selection.Named.Where(n => !_found.Contains(n) && !n.Equals(ProjectAssembly, StringComparison.OrdinalIgnoreCase)))
        {
            if (References.Any(r => NamesOf(r).Contains(name, StringComparer.OrdinalIgnoreCase)))
            {
                continue;
            }

            if (Projects.Any(p => ItemPath.NameOf(p).Equals(name, StringComparison.OrdinalIgnoreCase)))
            {
                Warn("KTLSW006", $"{name} is another project, so this item does nothing. That project weaves its assembly if it has <KernelTlsWeave Include=\"$(AssemblyName)\" /> itself.");
                continue;
            }

            string[] candidates = replacements.Value is { } known ? Candidates(known) : [];
            Warn(
                "KTLSW005",
                $"KernelTlsWeave names '{name}', and no package of {ProjectAssembly} has such an assembly. Expected {Selection.All}, {ProjectAssembly}, or the name of an assembly without .dll"
                + (candidates.Length != 0 ? $"; those with something to weave are {string.Join(", ", candidates)}." : "; none has anything to weave."));
        }
    }

    private string[] Candidates(Replacements replacements) =>
        [.. Assemblies.Concat(PlatformFiles)
            .Where(a => IsAssembly(a) && !Selection.IsOwn(ItemPath.NameOf(a)) && AssemblyWeaver.HasPlaces(a.ItemSpec, replacements))
            .Select(ItemPath.NameOf).Distinct(StringComparer.OrdinalIgnoreCase).Order(StringComparer.OrdinalIgnoreCase)];

    private static bool IsAssembly(ITaskItem item) => item.ItemSpec.EndsWith(".dll", StringComparison.OrdinalIgnoreCase);

    private static bool IsNative(ITaskItem item) => item.GetMetadata("AssetType") == "native";

    /// <summary>Returns the names that a reference may have: a path, the name of an assembly with or without its version, and its file's.</summary>
    private static string[] NamesOf(ITaskItem reference) =>
        [ItemPath.NameOf(reference), reference.ItemSpec.Split(',')[0].Trim(), ItemPath.NameOf(reference.GetMetadata("HintPath"))];
}

using System.Reflection;
using System.Reflection.PortableExecutable;
using KernelTls.Weave;
using KernelTls.Weave.Images;

namespace KernelTls.Tool.Weaving;

/// <summary>Weaves the assemblies of a folder in memory, and finds the other files that must change. Nothing is written here.</summary>
internal sealed class FolderWeaver
{
    private const string IsCompiled = "it was compiled to native code (ReadyToRun), which weaving would contradict";

    private readonly PublishedFolder _folder;
    private readonly BundleFolder _bundle;
    private readonly WeaveRequest _request;
    private readonly Replacements _replacements;
    private readonly bool _hasAddedStartup;

    private FolderWeaver(PublishedFolder folder, BundleFolder bundle, WeaveRequest request, FolderJournal? journal)
    {
        (_folder, _bundle, _request) = (folder, bundle, request);
        _hasAddedStartup = journal?.Files.Any(f => f.IsAdded && f.Path == $"{HostingStartup.Library}.dll") == true;
        _replacements = Replacements.Read(bundle.PathOf(Replacements.Library));
        CheckLibraries();
        string[] selected = Select();
        Assemblies = [.. selected.AsParallel().AsOrdered().Select(Weave)];
        Files = Changes();
    }

    /// <summary>Gets the results for the selected assemblies.</summary>
    public IReadOnlyList<WovenAssembly> Assemblies { get; }

    /// <summary>Gets the changes, in the order in which they may be made one by one.</summary>
    public IReadOnlyList<FileChange> Files { get; }

    /// <summary>Weaves a folder.</summary>
    /// <param name="folder">The folder.</param>
    /// <param name="bundle">The libraries.</param>
    /// <param name="request">What is woven.</param>
    /// <param name="journal">What was done to the folder before, or null.</param>
    /// <exception cref="FolderRefusedException">It cannot be woven.</exception>
    public static FolderWeaver Weave(PublishedFolder folder, BundleFolder bundle, WeaveRequest request, FolderJournal? journal) =>
        new(folder, bundle, request, journal);

    private string PathOf(string file) => Path.Combine(_folder.FullPath, file);

    /// <summary>Throws if the folder has another version of the library, or a .NET that lacks what the library needs.</summary>
    private void CheckLibraries()
    {
        foreach (string library in (string[])[Replacements.Library, HostingStartup.Library])
        {
            string file = PathOf($"{library}.dll");
            if (File.Exists(file) && AssemblyName.GetAssemblyName(file).Version is { } version && version != _bundle.Version)
            {
                throw new FolderRefusedException($"{file} is version {version.ToString(3)}, and this ktls weaves for {_bundle.Version.ToString(3)}. Use ktls {version.ToString(3)}.");
            }
        }

        if (_folder.Applications.Any(a => a.IsSelfContained))
        {
            TrimmedFramework framework = new(_folder.FullPath);
            bool isWeb = _folder.Applications.Any(a => a.IsWeb);
            if ((framework.FindMissing(_bundle.PathOf(Replacements.Library)) ?? (isWeb ? framework.FindMissing(_bundle.PathOf(HostingStartup.Library)) : null))
                is { } missing)
            {
                throw new FolderRefusedException($"the .NET in {_folder.FullPath} was trimmed, and the library needs {missing}. Publish it without PublishTrimmed, or add the package KernelTls.Weave to the project.");
            }
        }
    }

    private string[] Select()
    {
        if (_request.Names.Count == 0)
        {
            return [.. _request.All ? _folder.AllAssemblies : _folder.OwnAssemblies];
        }

        string[] all = [.. _folder.AllAssemblies];
        foreach (string name in _request.Names)
        {
            if (!all.Any(f => IsNamed(f, name)))
            {
                string[] candidates = [.. all.Where(f => AssemblyWeaver.HasPlaces(PathOf(f), _replacements)).Select(f => Path.GetFileNameWithoutExtension(f)).Distinct()];
                throw new ToolFailedException(ExitCode.WrongUsage, $"--include '{name}': expected the name of an assembly in {_folder.FullPath}, without .dll. "
                    + (candidates.Length != 0 ? $"Those with something to weave are {string.Join(", ", candidates)}." : "None has anything to weave."));
            }
        }

        return [.. all.Where(f => _request.Names.Any(n => IsNamed(f, n)))];
    }

    private static bool IsNamed(string file, string name) => Path.GetFileNameWithoutExtension(file).Equals(name, StringComparison.OrdinalIgnoreCase);

    private WovenAssembly Weave(string file)
    {
        byte[] image = File.ReadAllBytes(PathOf(file));
        try
        {
            return Weave(file, image);
        }
        catch (UnsupportedImageException e)
        {
            return Unchanged(file) with { Refusal = e.Message };
        }
        catch (Exception e)
        {
            // Damage may show anywhere, as any exception of the readers.
            return Unchanged(file) with { Refusal = $"it is damaged, or of a form that is not known here ({e.Message.TrimEnd('.')})" };
        }
    }

    private WovenAssembly Weave(string file, byte[] image)
    {
        bool wasWoven = IsWoven(image);
        bool wantsStartup = _folder.Applications.Any(a => a.EntryFile == file && WantsStartup(a)) && !HostingStartup.IsIn(image);
        WovenAssembly unchanged = Unchanged(file) with { WasWoven = wasWoven };
        if (!wantsStartup && (wasWoven || !AssemblyWeaver.HasPlaces(new MemoryStream(image), _replacements)))
        {
            return unchanged;
        }

        bool isCompiled = IsReadyToRun(image);
        if (isCompiled && !_request.Strip)
        {
            return unchanged with { Refusal = IsCompiled };
        }

        byte[] input = isCompiled ? ReadyToRun.Remove(image) : image;
        WeaveResult result = wasWoven ? new WeaveResult(null, [], []) : AssemblyWeaver.Weave(input, _replacements);
        byte[]? woven = wantsStartup ? HostingStartup.Add(result.Image ?? input, _bundle.Version) : result.Image;
        return unchanged with
        {
            Places = result.Places,
            Problems = result.Problems,
            AddsStartup = wantsStartup,
            RemovesNativeCode = isCompiled && woven is not null,
            Image = woven,
            Refusal = woven is not null && new FileInfo(PathOf(file)).LinkTarget is not null ? "it is a symbolic link" : null,
        };
    }

    /// <summary>Returns whether an application needs the start-up class. One that brings the library itself has it, or has left it out.</summary>
    private bool WantsStartup(PublishedApplication application) =>
        application.IsWeb && (_hasAddedStartup || application.Dependencies?.Has(HostingStartup.Library) != true);

    private static WovenAssembly Unchanged(string file) => new(file, [], [], false, false, false);

    private static bool IsWoven(byte[] image)
    {
        using PEReader pe = new(new MemoryStream(image));
        return AssemblyWeaver.IsWoven(pe);
    }

    private static bool IsReadyToRun(byte[] image)
    {
        using PEReader pe = new(new MemoryStream(image));
        return ReadyToRun.IsIn(pe);
    }

    private List<FileChange> Changes()
    {
        WovenAssembly[] refused = [.. Assemblies.Where(a => a.Refusal is not null)];
        if (refused.Length != 0)
        {
            throw new FolderRefusedException($"{string.Join("; ", refused.Select(a => $"{a.Path} cannot be woven, because {a.Refusal}"))}. "
                + (refused.Any(a => a.Refusal == IsCompiled) ? "--strip removes native code, and the runtime then compiles these assemblies at each start. " : "")
                + "--include names the assemblies to weave.");
        }

        if (Assemblies.All(a => a.Image is null))
        {
            return [];
        }

        Dictionary<string, byte[]> added = [];
        List<FileChange> edited = [];
        foreach (PublishedApplication application in _folder.Applications)
        {
            List<DependencyEntry> entries = [.. MissingLibraries(application, added)];
            if (application.Dependencies is { } dependencies && entries.Count != 0)
            {
                edited.Add(new FileChange(application.DependencyPath, dependencies.With(entries)));
            }
        }

        return
        [
            .. added.Where(a => !File.Exists(PathOf(a.Key))).Select(a => new FileChange(a.Key, a.Value)),
            .. edited,
            .. Assemblies.Where(a => a.Image is not null).Select(a => new FileChange(a.Path, a.Image!)),
        ];
    }

    /// <summary>Returns the libraries that an application lacks, and adds their files.</summary>
    private IEnumerable<DependencyEntry> MissingLibraries(PublishedApplication application, Dictionary<string, byte[]> files)
    {
        if (application.Dependencies?.Has(Replacements.Library) != true)
        {
            files[$"{Replacements.Library}.dll"] = File.ReadAllBytes(_bundle.PathOf(Replacements.Library));
            (string Path, string? Platform, string Shim)[] shims = [.. ShimsOf(application)];
            foreach ((string path, _, string shim) in shims)
            {
                files[path] = File.ReadAllBytes(shim);
            }

            yield return new DependencyEntry(Replacements.Library, _bundle.Version, [.. shims.Select(s => (s.Path, s.Platform))]);
        }

        bool hasStartup = Assemblies.Any(a => a.Path == application.EntryFile && a.AddsStartup);
        if (hasStartup && application.Dependencies?.Has(HostingStartup.Library) != true)
        {
            files[$"{HostingStartup.Library}.dll"] = File.ReadAllBytes(_bundle.PathOf(HostingStartup.Library));
            yield return new DependencyEntry(HostingStartup.Library, _bundle.Version, []);
        }
    }

    /// <summary>Returns the shims for an application: of its platform, or of all platforms if it is portable.</summary>
    private IEnumerable<(string Path, string? Platform, string Shim)> ShimsOf(PublishedApplication application)
    {
        string? platform = application.Dependencies is { } dependencies ? dependencies.Platform : NativeShim.Platform;
        if (platform is null)
        {
            return _bundle.Platforms.Select(p => ($"runtimes/{p}/native/{BundleFolder.ShimFile}", (string?)p, _bundle.ShimOf(p)));
        }

        return File.Exists(_bundle.ShimOf(platform))
            ? [(BundleFolder.ShimFile, null, _bundle.ShimOf(platform))]
            : throw new FolderRefusedException($"{application.Name} is for {platform}, and KernelTls is for {string.Join(", ", _bundle.Platforms)}.");
    }
}

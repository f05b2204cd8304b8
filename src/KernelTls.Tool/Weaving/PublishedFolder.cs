using KernelTls.Tool.Running;

namespace KernelTls.Tool.Weaving;

/// <summary>A folder that <c>dotnet publish</c> has written.</summary>
internal sealed class PublishedFolder
{
    private PublishedFolder(string path, IReadOnlyList<PublishedApplication> applications) => (FullPath, Applications) = (path, applications);

    /// <summary>Gets the path, without symbolic links.</summary>
    public string FullPath { get; }

    /// <summary>Gets the applications, of which a folder can have several.</summary>
    public IReadOnlyList<PublishedApplication> Applications { get; }

    /// <summary>Gets the paths, in the folder, of all assemblies that are not part of .NET and not the library's own.</summary>
    public IEnumerable<string> AllAssemblies
    {
        get
        {
            HashSet<string> framework = [.. ListedAssemblies(isFramework: true)];
            return Directory.EnumerateFiles(FullPath, "*.dll", SearchOption.AllDirectories)
                .Select(f => Path.GetRelativePath(FullPath, f))
                .Where(f => !framework.Contains(f) && !IsOwn(f) && !f.StartsWith(FolderJournal.Folder + '/', StringComparison.Ordinal))
                .Order(StringComparer.Ordinal);
        }
    }

    /// <summary>Gets those of the applications: their own assemblies and the libraries in their deps.json.</summary>
    public IEnumerable<string> OwnAssemblies => Applications.All(a => a.Dependencies is not null)
        ? Applications.Select(a => a.EntryFile).Concat(ListedAssemblies(isFramework: false)).Where(f => !IsOwn(f))
            .Distinct(StringComparer.Ordinal).Order(StringComparer.Ordinal)
        : AllAssemblies;

    /// <summary>Opens a folder.</summary>
    /// <exception cref="FolderRefusedException">It is not one that can be woven.</exception>
    public static PublishedFolder Open(string path)
    {
        string real = RealPath(path);
        string[] configurations = Directory.GetFiles(real, $"*{PublishedApplication.ConfigurationSuffix}");
        if (configurations.Length == 0)
        {
            throw new FolderRefusedException(WhyNoApplication(real));
        }

        PublishedFolder folder = new(real, [.. configurations.Order(StringComparer.Ordinal).Select(PublishedApplication.Read)]);
        foreach (PublishedApplication application in folder.Applications.Where(a => a.IsSelfContained))
        {
            if (application.Dependencies is null)
            {
                throw new FolderRefusedException($"{application.Name} brings .NET with it and has no {application.DependencyPath}, so that nothing tells the two apart.");
            }
        }

        return folder;
    }

    /// <summary>Returns the path of a folder without symbolic links.</summary>
    public static string RealPath(string path)
    {
        string full = Path.GetFullPath(path);
        string real = Path.GetPathRoot(full)!;
        foreach (string part in full.Split('/', StringSplitOptions.RemoveEmptyEntries))
        {
            real = Path.Combine(real, part);
            real = new DirectoryInfo(real).ResolveLinkTarget(returnFinalTarget: true) is { } target ? RealPath(target.FullName) : real;
        }

        return real;
    }

    private static bool IsOwn(string file) =>
        Path.GetFileName(file) is "KernelTls.dll" or "KernelTls.AspNetCore.dll" or "KernelTls.StartupHook.dll";

    /// <summary>Returns the files that a deps.json lists. The SDK lists the path in the package, and publishes most files without folders.</summary>
    private IEnumerable<string> ListedAssemblies(bool isFramework) =>
        from application in Applications
        where application.Dependencies is not null
        from asset in application.Dependencies!.Assemblies
        where asset.IsFramework == isFramework
        from file in new[] { asset.Path, Path.GetFileName(asset.Path) }.Distinct().Where(f => File.Exists(Path.Combine(FullPath, f))).Take(1)
        select file;

    private static string WhyNoApplication(string path)
    {
        foreach (string file in Directory.GetFiles(path))
        {
            using FileStream stream = File.OpenRead(file);
            byte[] start = new byte[4];
            if (stream.ReadAtLeast(start, start.Length, throwOnEndOfStream: false) < start.Length || !NativeProgram.IsProgram(start))
            {
                continue;
            }

            NativeProgram program = NativeProgram.Read(file);
            if (program.IsSingleFile)
            {
                return $"{file} is a single file with the assemblies in it. Publish it without PublishSingleFile.";
            }

            if (program.IsAheadOfTime)
            {
                return $"{file} is compiled to native code (NativeAOT) and has no assemblies. Add the package KernelTls.Weave to the project.";
            }
        }

        return $"{path} is not a published application: it has no file *{PublishedApplication.ConfigurationSuffix}.";
    }
}

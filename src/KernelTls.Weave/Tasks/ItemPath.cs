using Microsoft.Build.Framework;

namespace KernelTls.Weave;

/// <summary>Reads paths as projects write them. MSBuild adapts the separators of an item to the system, and leaves those of its metadata.</summary>
internal static class ItemPath
{
    /// <summary>Returns the name of the assembly or project that an item is the path of.</summary>
    public static string NameOf(ITaskItem item) => NameOf(item.ItemSpec);

    /// <summary>Returns the name of the file without its extension, for paths of any system.</summary>
    public static string NameOf(string path) => Path.GetFileNameWithoutExtension(FileOf(path));

    /// <summary>Returns the name of the file, for paths of any system.</summary>
    public static string FileOf(string path) => path[(path.LastIndexOfAny(['/', '\\']) + 1)..];

    /// <summary>Returns a relative path with the separators of this system.</summary>
    public static string ToSystem(string path) => path.Replace('\\', Path.DirectorySeparatorChar).Replace('/', Path.DirectorySeparatorChar);
}

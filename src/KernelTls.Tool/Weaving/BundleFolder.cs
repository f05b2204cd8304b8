using System.Reflection;

namespace KernelTls.Tool.Weaving;

/// <summary>The folder with the libraries that a woven application needs, and their shims.</summary>
internal sealed class BundleFolder
{
    /// <summary>The file name of the shim.</summary>
    public const string ShimFile = "libKernelTls.Native.so";

    private readonly string _path;

    private BundleFolder(string path)
    {
        _path = path;
        Version = AssemblyName.GetAssemblyName(PathOf(Weave.Replacements.Library)).Version!;
    }

    /// <summary>Gets the version of the libraries.</summary>
    public Version Version { get; }

    /// <summary>Gets the platforms that have a shim.</summary>
    public IEnumerable<string> Platforms =>
        Directory.GetDirectories(Path.Combine(_path, "runtimes")).Select(d => Path.GetFileName(d)!).Where(p => File.Exists(ShimOf(p)))
            .Order(StringComparer.Ordinal);

    /// <summary>Opens the one beside the tool.</summary>
    public static BundleFolder Open()
    {
        string folder = Path.Combine(AppContext.BaseDirectory, "bundle");
        try
        {
            return new BundleFolder(folder);
        }
        catch (Exception e) when (e is IOException or BadImageFormatException)
        {
            throw new ToolFailedException(ExitCode.Failed, $"{folder} does not have the libraries: {e.Message.TrimEnd('.')}. Install ktls again.", e);
        }
    }

    /// <summary>Returns the path of a library.</summary>
    public string PathOf(string library) => Path.Combine(_path, $"{library}.dll");

    /// <summary>Returns the path of a platform's shim.</summary>
    public string ShimOf(string platform) => Path.Combine(_path, "runtimes", platform, "native", ShimFile);
}

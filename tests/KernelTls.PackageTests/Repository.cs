namespace KernelTls.PackageTests;

/// <summary>Provides the repository's paths, seen from this program in artifacts/bin.</summary>
internal static class Repository
{
    public const string Shim = "libKernelTls.Native.so";

    public static string Root { get; } = Path.GetFullPath(Path.Combine(AppContext.BaseDirectory, "..", "..", "..", ".."));

    /// <summary>Gets the command that creates the packages.</summary>
    public static string Pack => Path.Combine(Root, "eng", "pack");

    /// <summary>Gets the command of the lab.</summary>
    public static string Lab => Path.Combine(Root, "eng", "lab");

    /// <summary>Gets the folder of the shim as built by eng/native, with a subfolder for each platform.</summary>
    public static string Shims => Path.Combine(Root, "artifacts", "native");

    /// <summary>
    /// Gets the folder of published applications, which are built on the host and started there and in the lab's cells.
    /// </summary>
    public static string Consumers => Path.Combine(Root, "artifacts", "consumers");

    /// <summary>Returns the path of an assembly of this repository, as used by every test of this build.</summary>
    public static string Built(string assembly) => Path.Combine(Root, "artifacts", "bin", assembly, "release", $"{assembly}.dll");
}

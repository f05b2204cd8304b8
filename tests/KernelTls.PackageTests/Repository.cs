namespace KernelTls.PackageTests;

/// <summary>Provides the repository's paths, seen from this program in artifacts/bin.</summary>
internal static class Repository
{
    public const string Shim = "libKernelTls.Native.so";

    public static string Root { get; } = Path.GetFullPath(Path.Combine(AppContext.BaseDirectory, "..", "..", "..", ".."));

    /// <summary>Gets the command that creates the packages.</summary>
    public static string Pack => Path.Combine(Root, "eng", "pack");

    /// <summary>Gets the command that makes the files of a release.</summary>
    public static string Release => Path.Combine(Root, "eng", "release");

    /// <summary>Gets the command that builds the site of the documents.</summary>
    public static string Docs => Path.Combine(Root, "eng", "docs");

    /// <summary>Gets the command of the lab.</summary>
    public static string Lab => Path.Combine(Root, "eng", "lab");

    /// <summary>Gets the folder of the shim as built by eng/native, with a subfolder for each platform.</summary>
    public static string Shims => Path.Combine(Root, "artifacts", "native");

    /// <summary>
    /// Gets the folder of published applications, which are built on the host and started there and in the lab's cells. A program of a run that
    /// works beside another one has KERNELTLS_CONSUMERS.
    /// </summary>
    public static string Consumers { get; } =
        Environment.GetEnvironmentVariable("KERNELTLS_CONSUMERS") is { Length: > 0 } own ? own : Path.Combine(Root, "artifacts", "consumers");

    /// <summary>Returns the path of an assembly of this repository, as used by every test of this build.</summary>
    public static string Built(string assembly) => Path.Combine(Root, "artifacts", "bin", assembly, "release", $"{assembly}.dll");

    /// <summary>Copies the sources, without history and build outputs, into a new folder.</summary>
    public static void CopySources(string folder) => CopySources(Root, folder);

    private static void CopySources(string from, string to)
    {
        Directory.CreateDirectory(to);
        foreach (string file in Directory.GetFiles(from))
        {
            File.Copy(file, Path.Combine(to, Path.GetFileName(file)));
        }

        foreach (string directory in Directory.GetDirectories(from))
        {
            if (Path.GetFileName(directory) is { } name && name is not ("artifacts" or ".git"))
            {
                CopySources(directory, Path.Combine(to, name));
            }
        }
    }
}

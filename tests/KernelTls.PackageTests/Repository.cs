namespace KernelTls.PackageTests;

/// <summary>Where things are, seen from this program in artifacts/bin.</summary>
internal static class Repository
{
    public const string Shim = "libKernelTls.Native.so";

    public static string Root { get; } = Path.GetFullPath(Path.Combine(AppContext.BaseDirectory, "..", "..", "..", ".."));

    /// <summary>The command that makes the packages.</summary>
    public static string Pack => Path.Combine(Root, "eng", "pack");

    /// <summary>The shim, as eng/native has built it, below a folder for each platform.</summary>
    public static string Shims => Path.Combine(Root, "artifacts", "native");

    /// <summary>Published applications: made on the host, and started there and in the cells of the lab.</summary>
    public static string Consumers => Path.Combine(Root, "artifacts", "consumers");

    /// <summary>An assembly of this repository, as every test of this build uses it.</summary>
    public static string Built(string assembly) => Path.Combine(Root, "artifacts", "bin", assembly, "release", $"{assembly}.dll");
}

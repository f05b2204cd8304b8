using System.Reflection;
using System.Runtime.Loader;

/// <summary>Loads the assemblies of the bundle that the application does not bring.</summary>
/// <param name="path">The folder of the bundle.</param>
/// <param name="version">The version of the bundle.</param>
internal sealed class BundleFolder(string path, Version version)
{
    private static readonly string[] s_assemblies = ["KernelTls", "KernelTls.AspNetCore", "KernelTls.Hosting"];

    /// <summary>Loads one of the bundle's assemblies. .NET calls this if the application does not have it.</summary>
    /// <returns>The assembly, or null if it is none of the bundle's, or one of a later version.</returns>
    public Assembly? Resolve(AssemblyLoadContext context, AssemblyName name) =>
        Array.IndexOf(s_assemblies, name.Name) >= 0 && (name.Version is null || name.Version <= version)
            ? context.LoadFromAssemblyPath(Path.Combine(path, $"{name.Name}.dll"))
            : null;
}

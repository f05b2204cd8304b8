using System.Reflection;
using System.Runtime.InteropServices;
using KernelTls.Interop;

namespace KernelTls.Tool;

/// <summary>
/// Finds libKernelTls.Native.so for this machine among those of the bundle in the tool's package. A tool is one package for all
/// platforms, and .NET does not search it for native libraries.
/// </summary>
internal static class NativeShim
{
    /// <summary>Gets the path of this machine's shim in a bundle.</summary>
    public static string RelativePath => Path.Combine("runtimes", Platform, "native", $"{KtlsNative.LibraryName}.so");

    /// <summary>Registers the resolver. Call this before the library is used for the first time.</summary>
    public static void Register() => NativeLibrary.SetDllImportResolver(typeof(KtlsStream).Assembly, Resolve);

    private static nint Resolve(string name, Assembly assembly, DllImportSearchPath? searchPath)
    {
        string path = Path.Combine(AppContext.BaseDirectory, "bundle", RelativePath);
        return NativeLibrary.TryLoad(path, out nint handle) ? handle : 0; // 0: .NET continues its own search
    }

    /// <summary>Gets the platform of this machine.</summary>
    public static string Platform
    {
        get
        {
#pragma warning disable CA1308 // The names of platforms are lower case.
            string architecture = RuntimeInformation.ProcessArchitecture.ToString().ToLowerInvariant();
#pragma warning restore CA1308
            return Directory.EnumerateFiles("/lib", "ld-musl-*").Any() && !Directory.EnumerateFiles("/lib", "ld-linux-*").Any() && !Directory.Exists("/lib64")
                ? $"linux-musl-{architecture}"
                : $"linux-{architecture}";
        }
    }
}

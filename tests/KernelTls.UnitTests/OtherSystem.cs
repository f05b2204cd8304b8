using System.Runtime.InteropServices;
using KernelTls.Offload;

namespace KernelTls.Tests;

/// <summary>Makes this process, which must have used nothing of the library yet, one on a system that is not Linux.</summary>
internal static class OtherSystem
{
    /// <summary>Begins, and returns the native libraries that the library asks for from now on.</summary>
    public static IReadOnlyCollection<string> Begin()
    {
        List<string> asked = [];
        NativeLibrary.SetDllImportResolver(typeof(KtlsStream).Assembly, (name, _, _) =>
        {
            asked.Add(name);
            return 0;
        });
        Platform.IsLinux = false;
        return asked;
    }
}

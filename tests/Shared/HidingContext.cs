using System.Reflection;
using System.Runtime.Loader;

namespace KernelTls.Tests;

/// <summary>Loads a copy of a library for which one private member of another assembly does not exist (<see cref="PrivateNames"/>).</summary>
internal sealed class HidingContext : AssemblyLoadContext
{
    private HidingContext(string hidden)
        : base(hidden)
    {
    }

    /// <summary>Returns the copy. What it refers to is what this program refers to.</summary>
    public static Assembly Load(string library, string hidden) =>
        new HidingContext(hidden).LoadFromStream(new MemoryStream(PrivateNames.Alter(library, hidden)));

    protected override nint LoadUnmanagedDll(string unmanagedDllName)
    {
        string shim = Path.Combine(AppContext.BaseDirectory, $"{unmanagedDllName}.so");
        return File.Exists(shim) ? LoadUnmanagedDllFromPath(shim) : 0;
    }
}

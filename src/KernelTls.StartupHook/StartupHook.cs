using System.Reflection;
using System.Runtime.Loader;

/// <summary>
/// Brings kernel TLS to an application that was built without it. .NET finds this type by its name, and calls <see cref="Initialize"/> before
/// Main.
/// </summary>
/// <remarks>
/// It must not make an application worse: it does nothing on a .NET that KernelTls does not support and where no switch is on, and it never
/// throws. The rest of the start is in KernelTls (BundleStartup).
/// </remarks>
internal static class StartupHook
{
    private const string Library = "KernelTls";

    /// <summary>Begins, if a switch is on. Does nothing otherwise. Does not throw.</summary>
    public static void Initialize()
    {
        if (!HookGate.IsOpen(Environment.Version, Environment.GetEnvironmentVariable, AppContext.TryGetSwitch))
        {
            return;
        }

        try
        {
            Begin();
        }
        catch (Exception e)
        {
            HookFailure.Report(e);
        }
    }

    private static void Begin()
    {
        Assembly hook = typeof(StartupHook).Assembly;
        string folder = Path.GetDirectoryName(hook.Location)!;
        Version version = hook.GetName().Version!;
        BundleFolder bundle = new(folder, version);
        AssemblyLoadContext.Default.Resolving += bundle.Resolve;
        try
        {
            // Without a version: what the application brings, or else the bundle's.
            Assembly library = Assembly.Load(new AssemblyName(Library));
            if (library.GetName().Version is not { } present || present < version)
            {
                throw new InvalidOperationException(
                    $"The application has {Library} {library.GetName().Version}, which is older than this bundle ({version}), and uses that.");
            }

            MethodInfo begin = library.GetType("KernelTls.Bundle.BundleStartup")?.GetMethod("Begin", BindingFlags.Static | BindingFlags.NonPublic)
                ?? throw new InvalidOperationException($"{Library} {present} of the application does not know this bundle ({version}).");
            begin.CreateDelegate<Action<string, Version>>()(folder, version);
        }
        catch
        {
            AssemblyLoadContext.Default.Resolving -= bundle.Resolve;
            throw;
        }
    }
}

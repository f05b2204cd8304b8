using System.Runtime.Loader;

/// <summary>
/// Brings kernel TLS to an application that was built without it. .NET finds this type by its name, and calls <see cref="Initialize"/> before
/// Main.
/// </summary>
/// <remarks>
/// It must not make an application worse: it does nothing on a .NET that KernelTls does not support or if no switch is on, and it never
/// throws.
/// </remarks>
internal static class StartupHook
{
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

    // A method of its own, so that a type that cannot be loaded is an exception there.
    private static void Begin()
    {
        BundleFolder bundle = new(typeof(StartupHook).Assembly);
        AssemblyLoadContext.Default.Resolving += bundle.Resolve;
        try
        {
            bundle.StartLibrary();
            HostWatch.Start(bundle);
        }
        catch
        {
            AssemblyLoadContext.Default.Resolving -= bundle.Resolve;
            throw;
        }
    }
}

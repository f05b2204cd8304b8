using System.Reflection;
using System.Runtime.CompilerServices;
using System.Runtime.Loader;

/// <summary>
/// Brings kernel TLS to an application that was built without it. .NET finds this type by its name, and calls <see cref="Initialize"/> before
/// Main.
/// </summary>
/// <remarks>
/// It must not make an application worse: it does nothing on a .NET that KernelTls does not support or if no switch is on, and it never
/// throws. The library is loaded only in a process that loads .NET's TLS or builds a host.
/// </remarks>
internal static class StartupHook
{
    // Without it there is no handshake.
    private const string Tls = "System.Net.Security,";

    private static BundleFolder? s_bundle;

    /// <summary>Waits for a host, or for the application to load .NET's TLS, if a switch is on. Does nothing otherwise. Does not throw.</summary>
    public static void Initialize()
    {
        if (!HookGate.IsOpen(Environment.Version, Environment.GetEnvironmentVariable, AppContext.TryGetSwitch))
        {
            return;
        }

        try
        {
            Watch();
        }
        catch (Exception e)
        {
            HookFailure.Report(e);
        }
    }

    /// <remarks>A method of its own, so that a type that cannot be loaded is an exception there.</remarks>
    [MethodImpl(MethodImplOptions.NoInlining)]
    private static void Watch()
    {
        s_bundle = new BundleFolder(typeof(StartupHook).Assembly);
        AssemblyLoadContext.Default.Resolving += s_bundle.Resolve;

        // Now, not when an assembly is loaded: .NET announces that without a lock, so another thread could build a host before the watch began.
        HostWatch.Start(s_bundle);

        AppDomain.CurrentDomain.AssemblyLoad += StartIfTls;

        // Another hook may have loaded it.
        foreach (Assembly assembly in AppDomain.CurrentDomain.GetAssemblies())
        {
            StartIfTls(assembly);
        }
    }

    private static void StartIfTls(object? sender, AssemblyLoadEventArgs e) => StartIfTls(e.LoadedAssembly);

    /// <remarks>
    /// The thread that loads the assembly continues only after this, so the library sees its first handshake. Another thread can begin one meanwhile,
    /// which stays unnamed. It does not wait: a thread that waits here could hold a lock that the library needs to start.
    /// </remarks>
    private static void StartIfTls(Assembly loaded)
    {
        if (loaded.FullName is { } name && name.StartsWith(Tls, StringComparison.Ordinal))
        {
            AppDomain.CurrentDomain.AssemblyLoad -= StartIfTls;
            s_bundle!.TryStart();
        }
    }
}

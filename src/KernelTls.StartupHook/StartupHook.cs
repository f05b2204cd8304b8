using System.Reflection;
using System.Runtime.CompilerServices;
using System.Runtime.Loader;

/// <summary>
/// Brings kernel TLS to an application that was built without it. .NET finds this type by its name, and calls <see cref="Initialize"/> before
/// Main.
/// </summary>
/// <remarks>
/// It must not make an application worse: it does nothing on a .NET that KernelTls does not support or if no switch is on, and it never
/// throws. The library is loaded only in a process that loads .NET's TLS, or what a host is announced with.
/// </remarks>
internal static class StartupHook
{
    // Without them there is no handshake, and no host.
    private static readonly string[] s_causes = ["System.Net.Security,", "System.Diagnostics.DiagnosticSource,"];

    private static int s_begun;

    /// <summary>Waits for the application to load what the library is for, if a switch is on. Does nothing otherwise. Does not throw.</summary>
    public static void Initialize()
    {
        if (!HookGate.IsOpen(Environment.Version, Environment.GetEnvironmentVariable, AppContext.TryGetSwitch))
        {
            return;
        }

        AppDomain.CurrentDomain.AssemblyLoad += BeginIfCause;

        // Another hook may have loaded one of them.
        foreach (Assembly assembly in AppDomain.CurrentDomain.GetAssemblies())
        {
            BeginIfCause(assembly);
        }
    }

    private static void BeginIfCause(object? sender, AssemblyLoadEventArgs e) => BeginIfCause(e.LoadedAssembly);

    /// <remarks>
    /// The thread that loads the assembly goes on only after this, so the library sees its first handshake, and its first host. Other threads can
    /// use the assembly meanwhile, and do not wait: a thread that waits here could hold a lock that the library needs to start.
    /// </remarks>
    private static void BeginIfCause(Assembly loaded)
    {
        string name = loaded.FullName ?? "";
        if (!Array.Exists(s_causes, cause => name.StartsWith(cause, StringComparison.Ordinal)) || Interlocked.Exchange(ref s_begun, 1) != 0)
        {
            return;
        }

        AppDomain.CurrentDomain.AssemblyLoad -= BeginIfCause;
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
    [MethodImpl(MethodImplOptions.NoInlining)]
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

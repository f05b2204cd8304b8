using System.Reflection;
using System.Runtime.InteropServices;
using System.Runtime.Loader;

/// <summary>Loads the assemblies of the bundle that the application does not bring, and the shim for this process.</summary>
internal sealed class BundleFolder
{
    /// <summary>The library, which needs nothing but .NET.</summary>
    public const string Library = "KernelTls";

    /// <summary>The assembly for applications with a web host.</summary>
    public const string WebLibrary = "KernelTls.AspNetCore";

    /// <summary>The assembly for other applications with a host and IHttpClientFactory.</summary>
    public const string HostLibrary = "KernelTls.Hosting";

    private static readonly string[] s_assemblies = [Library, WebLibrary, HostLibrary];

    private readonly Assembly _hook;
    private readonly string _path;

    private Version? _version;
    private volatile bool _hasStarted;
    private int _hasFailed;

    /// <param name="hook">The assembly of the hook, which is in the folder.</param>
    public BundleFolder(Assembly hook)
    {
        _hook = hook;
        _path = Path.GetDirectoryName(hook.Location)!;
    }

    /// <summary>Gets the version of all its assemblies. Not read before it is needed, because parsing it initializes globalization.</summary>
    private Version Version => _version ??= VersionOf(_hook);

    /// <summary>Loads one of the bundle's assemblies. .NET calls this if the application does not have it.</summary>
    /// <returns>The assembly, or null if it is none of the bundle's, or one of a later version, or if the library cannot start.</returns>
    public Assembly? Resolve(AssemblyLoadContext context, AssemblyName name) =>
        Volatile.Read(ref _hasFailed) == 0 && Array.IndexOf(s_assemblies, name.Name) >= 0 && (name.Version is null || name.Version <= Version)
            ? LoadOwn(context, name.Name!)
            : null;

    /// <summary>
    /// Has the library notice from now on which connections the switch does not reach. Does nothing if it has started. Does not throw.
    /// </summary>
    /// <remarks>
    /// Threads that come at the same time each do all of it, which has the same result. None waits for another one, except as .NET waits if two
    /// load the same file: it may hold a lock that the other one needs.
    /// </remarks>
    /// <returns>Whether the library has started. The first failure of the process is reported.</returns>
    public bool TryStart()
    {
        if (!_hasStarted && Volatile.Read(ref _hasFailed) == 0)
        {
            try
            {
                Start();
                _hasStarted = true;
            }
            catch (Exception e)
            {
                if (Interlocked.Exchange(ref _hasFailed, 1) == 0)
                {
                    HookFailure.Report(e);
                }
            }
        }

        return _hasStarted;
    }

    /// <summary>Adds the services of one of the other assemblies to those of a host that is being built.</summary>
    /// <param name="assembly">The name of the assembly.</param>
    /// <param name="context">The HostBuilderContext.</param>
    /// <param name="services">The IServiceCollection.</param>
    /// <exception cref="HookException">The application brings a version of the library that this assembly does not fit.</exception>
    public void AddServices(string assembly, object context, object services)
    {
        Assembly library = Load(Library);
        Assembly added = Load(assembly);
        if (VersionOf(added) != VersionOf(library))
        {
            throw new HookException($"The application has {Library} {VersionOf(library)} without {assembly}, and that of the bundle in {_path} is {Version}.");
        }

        try
        {
            Find(added, $"{assembly}.BundleServices", "Add").Invoke(null, [context, services]);
        }
        catch (TargetInvocationException e) when (e.InnerException is { } cause)
        {
            throw new HookException($"{assembly}: {HookFailure.Describe(cause)}");
        }
    }

    /// <summary>Returns the version of an assembly. GetName() also returns its culture, and would initialize globalization for that.</summary>
    private static Version VersionOf(Assembly assembly)
    {
        const string Key = "Version=";
        string name = assembly.FullName!;
        int start = name.IndexOf(Key, StringComparison.Ordinal) + Key.Length;
        return Version.Parse(name.AsSpan(start, name.IndexOf(',', start) - start));
    }

    private void Start()
    {
        Assembly library = Load(Library);
        if (VersionOf(library) is var present && present < Version)
        {
            throw new HookException($"The application has {Library} {present}, and the bundle in {_path} is {Version}. Update the application, or remove the package from it.");
        }

        if (IsOwn(library))
        {
            try
            {
                NativeLibrary.SetDllImportResolver(library, FindShim);
            }
            catch (InvalidOperationException)
            {
                // Another thread has set it.
            }
        }

        Find(library, "KernelTls.Diagnostics.BuildStartup", "Begin").CreateDelegate<Action>()();
    }

    private static Assembly Load(string name) => Assembly.Load(new AssemblyName(name));

    private Assembly LoadOwn(AssemblyLoadContext context, string name)
    {
        // Reading the version without loading the file takes more time than all the rest. Nothing uses a file of another version.
        string path = Path.Combine(_path, $"{name}.dll");
        Assembly assembly = context.LoadFromAssemblyPath(path);
        return VersionOf(assembly) is var version && version == Version
            ? assembly
            : throw new HookException($"{path} is version {version}, and the hook is version {Version}. Copy the whole bundle.");
    }

    private MethodInfo Find(Assembly assembly, string type, string method) =>
        assembly.GetType(type)?.GetMethod(method, BindingFlags.Static | BindingFlags.Public | BindingFlags.NonPublic)
            ?? throw new HookException($"{assembly.FullName} lacks {type}.{method}, which the bundle in {_path} needs.");

    private bool IsOwn(Assembly assembly) => assembly.Location.StartsWith(_path + Path.DirectorySeparatorChar, StringComparison.Ordinal);

    private nint FindShim(string name, Assembly assembly, DllImportSearchPath? searchPath)
    {
        string platform = $"{(IsMusl() ? "linux-musl" : "linux")}-{RuntimeInformation.ProcessArchitecture}".ToLowerInvariant();
        return NativeLibrary.Load(Path.Combine(_path, "runtimes", platform, "native", $"{name}.so"));
    }

    /// <summary>Returns whether the C library of this process is musl: a machine can have both.</summary>
    private static bool IsMusl()
    {
        try
        {
            return File.ReadAllText("/proc/self/maps").Contains("/ld-musl-", StringComparison.Ordinal);
        }
        catch (Exception e) when (e is IOException or UnauthorizedAccessException)
        {
            return RuntimeInformation.RuntimeIdentifier.Contains("musl", StringComparison.Ordinal);
        }
    }
}

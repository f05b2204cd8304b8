using System.Diagnostics;
using System.Reflection;

/// <summary>Adds kernel TLS to each host of the process, when it is built.</summary>
/// <remarks>
/// Microsoft.Extensions.Hosting announces a host to diagnostic listeners just before it builds it, whichever builder the application uses:
/// WebApplication's, the slim one, or that of a worker. The hook does not refer to that assembly, which the application may bring in any
/// version.
/// </remarks>
internal sealed class HostWatch : IObserver<DiagnosticListener>, IObserver<KeyValuePair<string, object?>>
{
    private const string Source = "Microsoft.Extensions.Hosting";
    private const string Building = "HostBuilding";

    // What the bundle's assemblies refer to: .NET 10's web host, or the client factory of an application that brings it.
    private const string WebHost = "Microsoft.AspNetCore.Hosting";
    private const int OldestWebHost = 10;
    private const string ClientFactory = "Microsoft.Extensions.Http";
    private const int OldestClientFactory = 8;

    private readonly BundleFolder _bundle;

    private HostWatch(BundleFolder bundle) => _bundle = bundle;

    /// <summary>Begins to watch.</summary>
    public static void Start(BundleFolder bundle) => DiagnosticListener.AllListeners.Subscribe(new HostWatch(bundle));

    public void OnNext(DiagnosticListener value)
    {
        if (value.Name == Source)
        {
            value.Subscribe(this, static name => name == Building);
        }
    }

    public void OnNext(KeyValuePair<string, object?> value)
    {
        if (value.Key == Building && value.Value is { } builder && _bundle.TryStart())
        {
            Try(() => Prepare(builder));
        }
    }

    public void OnCompleted()
    {
    }

    public void OnError(Exception error)
    {
    }

    /// <summary>Calls ConfigureServices of the host's builder. The application's own services are registered before.</summary>
    private void Prepare(object builder)
    {
        MethodInfo configure = builder.GetType().GetInterface("Microsoft.Extensions.Hosting.IHostBuilder")?.GetMethod("ConfigureServices")
            ?? throw new HookException($"{builder.GetType()} has no ConfigureServices.");
        Type action = configure.GetParameters()[0].ParameterType;
        MethodInfo add = GetType().GetMethod(nameof(Add), BindingFlags.Instance | BindingFlags.NonPublic)!.MakeGenericMethod(action.GetGenericArguments());
        configure.Invoke(builder, [add.CreateDelegate(action, this)]);
    }

    private void Add<TContext, TServices>(TContext context, TServices services)
        where TContext : class
        where TServices : class => Try(() => AddServices(context, services));

    private void AddServices(object context, object services)
    {
        if (IsLoaded(WebHost, OldestWebHost))
        {
            _bundle.AddServices(BundleFolder.WebLibrary, context, services);
        }
        else if (IsLoaded(ClientFactory, OldestClientFactory))
        {
            _bundle.AddServices(BundleFolder.HostLibrary, context, services);
        }
    }

    /// <summary>
    /// Returns whether the process has loaded an assembly. An application that uses it has, because its services are registered by now.
    /// </summary>
    /// <exception cref="HookException">It is older than the oldest version that the bundle can use.</exception>
    private static bool IsLoaded(string assembly, int oldest) =>
        VersionOf(assembly) is { } version
        && (version.Major >= oldest ? true : throw new HookException($"The application has {assembly} {version}, and the bundle needs {oldest}.0 or later."));

    /// <summary>Returns the version of an assembly that the process has loaded, or null.</summary>
    private static Version? VersionOf(string assembly)
    {
        foreach (Assembly loaded in AppDomain.CurrentDomain.GetAssemblies())
        {
            AssemblyName name = loaded.GetName();
            if (name.Name == assembly)
            {
                return name.Version;
            }
        }

        return null;
    }

    private static void Try(Action work)
    {
        try
        {
            work();
        }
        catch (Exception e)
        {
            HookFailure.Report(e);
        }
    }
}

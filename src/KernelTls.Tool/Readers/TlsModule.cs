using System.Globalization;

namespace KernelTls.Tool.Readers;

/// <summary>Describes the kernel's tls module, from files alone. Reading them does not load the module.</summary>
/// <param name="State">The state of the module.</param>
/// <param name="LoadedByLooking">Whether the module was loaded by this process's probe.</param>
/// <param name="CanLoad">
/// Whether this process has CAP_NET_ADMIN on the host, in which case a request for kernel TLS loads the module.
/// </param>
/// <param name="InContainer">Whether there are signs of a container or another user namespace.</param>
/// <param name="ToDo">The advice.</param>
internal sealed record TlsModule(TlsModuleState State, bool LoadedByLooking, bool CanLoad, bool InContainer, string ToDo)
{
    private const int CapNetAdmin = 12;

    /// <summary>Reads the current state.</summary>
    /// <param name="root">The root of the file system; tests use their own.</param>
    /// <param name="release">The kernel's release.</param>
    public static TlsModule Read(string root, string release)
    {
        if (!OperatingSystem.IsLinux())
        {
            return new TlsModule(TlsModuleState.NotLinux, false, false, false, "Kernel TLS is a feature of Linux.");
        }

        TlsModuleState state = FindState(root, release);
        bool container = IsContainer(root);
        bool canLoad = !IsUserNamespace(root) && HasNetAdmin(root);
        return new TlsModule(state, false, canLoad, container, Advise(state, canLoad, container));
    }

    /// <summary>Returns this state, updated by what changed since an earlier reading.</summary>
    /// <param name="before">The state before the probe of the kernel.</param>
    /// <param name="refused">Whether the probe found no kernel TLS.</param>
    public TlsModule After(TlsModule before, bool refused) => this with
    {
        LoadedByLooking = State == TlsModuleState.Loaded && before.State is TlsModuleState.Loadable or TlsModuleState.NotVisible,
        ToDo = refused && CanLoad && State == TlsModuleState.Loadable
            ? "It was not loaded on request. modprobe tls shows why: it is blacklisted (/etc/modprobe.d, module_blacklist= on the kernel's command line), or not signed although the kernel requires that."
            : ToDo,
    };

    private static TlsModuleState FindState(string root, string release)
    {
        bool listed = Lines(root, "proc/modules").Any(l => l.StartsWith("tls ", StringComparison.Ordinal));
        bool working = File.Exists(Path.Combine(root, "proc/net/tls_stat"))
            || Lines(root, "proc/sys/net/ipv4/tcp_available_ulp").Any(l => l.Split(' ').Contains("tls"));
        if (working || listed)
        {
            return listed ? TlsModuleState.Loaded : TlsModuleState.BuiltIn;
        }

        string? modules = new[] { $"lib/modules/{release}", $"usr/lib/modules/{release}" }
            .Select(d => Path.Combine(root, d)).FirstOrDefault(Directory.Exists);
        if (modules is null)
        {
            return TlsModuleState.NotVisible;
        }

        return Lines(modules, "modules.dep").Any(l => l.StartsWith("kernel/net/tls/tls.ko", StringComparison.Ordinal))
            ? TlsModuleState.Loadable
            : TlsModuleState.Absent;
    }

    private static string Advise(TlsModuleState state, bool canLoad, bool container) => state switch
    {
        TlsModuleState.Loaded or TlsModuleState.BuiltIn => "No action is needed.",
        TlsModuleState.Loadable when canLoad => "modprobe tls (and echo tls > /etc/modules-load.d/tls.conf to load it after restarts).",
        TlsModuleState.Loadable or TlsModuleState.NotVisible when container =>
            "Load it on the host: modprobe tls, as root there. A container cannot load modules; every container uses the host's.",
        TlsModuleState.Loadable =>
            "modprobe tls as root: this process lacks CAP_NET_ADMIN on the host, so the kernel does not load it automatically.",
        TlsModuleState.Absent =>
            "This kernel was built or installed without it (CONFIG_TLS): install the distribution's full kernel, or its package of extra modules.",
        _ => "The modules of this kernel are not visible here: try modprobe tls as root on the host. If that finds nothing, the kernel has no tls module (CONFIG_TLS).",
    };

    private static bool IsContainer(string root) =>
        File.Exists(Path.Combine(root, ".dockerenv"))
        || File.Exists(Path.Combine(root, "run/.containerenv"))
        || File.Exists(Path.Combine(root, "run/systemd/container"))
        || Directory.Exists(Path.Combine(root, "run/secrets/kubernetes.io"))
        || IsUserNamespace(root);

    /// <summary>
    /// Returns whether this is another user namespace. The host's namespace maps every user to itself.
    /// </summary>
    private static bool IsUserNamespace(string root)
    {
        string[] lines = Lines(root, "proc/self/uid_map");
        return lines.Length > 0
            && lines[0].Split((char[]?)null, StringSplitOptions.RemoveEmptyEntries) is not ["0", "0", "4294967295"];
    }

    private static bool HasNetAdmin(string root)
    {
        const string Effective = "CapEff:";
        string? line = Lines(root, "proc/self/status").FirstOrDefault(l => l.StartsWith(Effective, StringComparison.Ordinal));
        return line is not null
            && ulong.TryParse(line.AsSpan(Effective.Length).Trim(), NumberStyles.HexNumber, CultureInfo.InvariantCulture, out ulong set)
            && (set & (1UL << CapNetAdmin)) != 0;
    }

    private static string[] Lines(string directory, string path)
    {
        try
        {
            return File.ReadAllLines(Path.Combine(directory, path));
        }
        catch (Exception e) when (e is IOException or UnauthorizedAccessException)
        {
            return [];
        }
    }
}

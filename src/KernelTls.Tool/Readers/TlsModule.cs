using System.Globalization;

namespace KernelTls.Tool.Readers;

/// <summary>What is known of the kernel's tls module, from files alone: looking loads nothing.</summary>
/// <param name="State">Where it is.</param>
/// <param name="LoadedByLooking">It was not loaded before this process asked the kernel for kernel TLS, which loads it.</param>
/// <param name="CanLoad">This process has CAP_NET_ADMIN on the host: asking the kernel for TLS loads the module.</param>
/// <param name="InContainer">Signs of a container or another user namespace.</param>
/// <param name="ToDo">What to do, or why there is nothing to do.</param>
internal sealed record TlsModule(TlsModuleState State, bool LoadedByLooking, bool CanLoad, bool InContainer, string ToDo)
{
    private const int CapNetAdmin = 12;

    /// <summary>The state now.</summary>
    /// <param name="root">Where the file system begins; tests have their own.</param>
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

    /// <summary>The state now, and whether it has changed since.</summary>
    /// <param name="before">Read before the kernel was asked for kernel TLS.</param>
    /// <param name="refused">The kernel was asked, and had none.</param>
    public TlsModule After(TlsModule before, bool refused) => this with
    {
        LoadedByLooking = State == TlsModuleState.Loaded && before.State is TlsModuleState.Loadable or TlsModuleState.NotVisible,
        ToDo = refused && CanLoad && State == TlsModuleState.Loadable
            ? "It was not loaded when it was asked for, and modprobe tls says why: blacklisted (/etc/modprobe.d, module_blacklist= on the kernel's command line), or not signed where the kernel wants that."
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
        TlsModuleState.Loaded or TlsModuleState.BuiltIn => "Nothing to do.",
        TlsModuleState.Loadable when canLoad => "modprobe tls (and echo tls > /etc/modules-load.d/tls.conf to keep it over restarts).",
        TlsModuleState.Loadable or TlsModuleState.NotVisible when container =>
            "Load it on the host: modprobe tls, as root there. A container cannot load modules; every container uses the host's.",
        TlsModuleState.Loadable =>
            "modprobe tls as root: this process lacks CAP_NET_ADMIN on the host, so that the kernel does not load it by itself.",
        TlsModuleState.Absent =>
            "This kernel was built or installed without it (CONFIG_TLS): install the distribution's full kernel, or its package of extra modules.",
        _ => "No modules of this kernel can be seen from here: try modprobe tls as root on the host; if that finds nothing, the kernel has none (CONFIG_TLS).",
    };

    private static bool IsContainer(string root) =>
        File.Exists(Path.Combine(root, ".dockerenv"))
        || File.Exists(Path.Combine(root, "run/.containerenv"))
        || File.Exists(Path.Combine(root, "run/systemd/container"))
        || Directory.Exists(Path.Combine(root, "run/secrets/kubernetes.io"))
        || IsUserNamespace(root);

    /// <summary>The host's own maps every user to itself.</summary>
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

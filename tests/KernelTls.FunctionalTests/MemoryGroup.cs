using System.Globalization;
using System.Runtime.InteropServices;

namespace KernelTls.FunctionalTests;

/// <summary>
/// A memory cgroup of sockets alone (Documentation/admin-guide/cgroup-v2.rst). A socket belongs to the group in which its process was when
/// it created or accepted it, and stays there when the process leaves. So the group can be at its limit without a process to kill.
/// </summary>
internal sealed partial class MemoryGroup : IDisposable
{
    /// <summary>What the sockets may take, beyond what they have.</summary>
    private const long Rest = 512 << 10;

    private readonly string _root = Directory.CreateTempSubdirectory("cgroup").FullName;
    private readonly string _group;

    public MemoryGroup()
    {
        Assert.True(Mount("none", _root, "cgroup2", 0, 0) == 0, $"no cgroup2 can be mounted here: errno {Marshal.GetLastPInvokeError()}");
        Assert.Contains("memory", File.ReadAllText(Path.Combine(_root, "cgroup.controllers")), StringComparison.Ordinal);
        File.WriteAllText(Path.Combine(_root, "cgroup.subtree_control"), "+memory");
        _group = Directory.CreateDirectory(Path.Combine(_root, $"kerneltls-{Environment.ProcessId}")).FullName;
    }

    /// <summary>Gets a value that indicates whether memory was refused because of the limit.</summary>
    public bool Refused => Of("memory.events", "max") > 0;

    /// <summary>Runs <paramref name="work"/> while the process is in the group.</summary>
    public async Task<T> RunAsync<T>(Func<Task<T>> work)
    {
        Enter(_group);
        try
        {
            return await work();
        }
        finally
        {
            Enter(_root);
        }
    }

    /// <summary>Gets the memory of the kernel's objects for the sockets (slab) and of their data (sock), in bytes.</summary>
    public (long Objects, long Data) Used => (Of("memory.stat", "slab"), Of("memory.stat", "sock"));

    /// <summary>Limits the group to little more than it has.</summary>
    public void LimitRest()
    {
        long limit = long.Parse(File.ReadAllText(Path.Combine(_group, "memory.current")), CultureInfo.InvariantCulture) + Rest;
        File.WriteAllText(Path.Combine(_group, "memory.max"), limit.ToString(CultureInfo.InvariantCulture));
    }

    public void Dispose()
    {
        Directory.Delete(_group);
        Assert.Equal(0, Unmount(_root, 0));
        Directory.Delete(_root);
    }

    private static void Enter(string group) =>
        File.WriteAllText(Path.Combine(group, "cgroup.procs"), Environment.ProcessId.ToString(CultureInfo.InvariantCulture));

    private long Of(string file, string name) => long.Parse(
        File.ReadLines(Path.Combine(_group, file)).First(l => l.StartsWith(name + " ", StringComparison.Ordinal))[(name.Length + 1)..], CultureInfo.InvariantCulture);

    [LibraryImport("libc", EntryPoint = "mount", SetLastError = true, StringMarshalling = StringMarshalling.Utf8)]
    private static partial int Mount(string source, string target, string type, nuint flags, nint data);

    [LibraryImport("libc", EntryPoint = "umount2", SetLastError = true, StringMarshalling = StringMarshalling.Utf8)]
    private static partial int Unmount(string target, int flags);
}

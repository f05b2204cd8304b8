using System.Globalization;
using System.Runtime.InteropServices;
using KernelTls.Interop;

namespace KernelTls.Soak;

/// <summary>Contains the resources of the process while its clients rest.</summary>
/// <param name="Operations">The number of operations until then.</param>
/// <param name="Descriptors">The targets of the open descriptors.</param>
/// <param name="Connections">The number of native connections.</param>
/// <param name="KernelSending">The number of sockets that encrypt in the kernel, in this network namespace.</param>
/// <param name="KernelReceiving">The number of sockets that decrypt in the kernel, in this network namespace.</param>
/// <param name="Managed">The bytes of the managed heap after a collection.</param>
/// <param name="Resident">The resident bytes of the process after a collection.</param>
internal sealed partial record Footprint(
    long Operations,
    IReadOnlyList<string> Descriptors,
    int Connections,
    long KernelSending,
    long KernelReceiving,
    long Managed,
    long Resident)
{
    /// <summary>Measures the resources, once the closing connections have ended.</summary>
    /// <remarks>
    /// A closed socket leaves the kernel when its last segment is acknowledged, and the finalizer frees what a failed
    /// end has left.
    /// </remarks>
    /// <param name="operations">The number of operations.</param>
    /// <param name="connections">The number of native connections that remain while clients rest.</param>
    /// <param name="limit">The time that the other ones may take to end.</param>
    public static async Task<Footprint> MeasureAsync(long operations, int connections, TimeSpan limit)
    {
        using PeriodicTimer timer = new(TimeSpan.FromMilliseconds(100));
        long deadline = Environment.TickCount64 + (long)limit.TotalMilliseconds;
        int quiet = 0;
        for (int sockets = -1; quiet < 5 && Environment.TickCount64 < deadline;)
        {
            await timer.WaitForNextTickAsync();
            GC.Collect();
            GC.WaitForPendingFinalizers();
            int now = ReadDescriptors().Count;
            quiet = now == sockets && SafeTlsConnectionHandle.Count <= connections ? quiet + 1 : 0;
            sockets = now;
        }

        for (int i = 0; i < 2; i++)
        {
            GC.Collect(GC.MaxGeneration, GCCollectionMode.Aggressive, blocking: true, compacting: true);
            GC.WaitForPendingFinalizers();
        }

        ReturnFreeMemory();
        SortedDictionary<string, long> kernel = TlsStat.Read() ?? [];
        return new Footprint(
            operations,
            ReadDescriptors(),
            SafeTlsConnectionHandle.Count,
            kernel.GetValueOrDefault("TlsCurrTxSw") + kernel.GetValueOrDefault("TlsCurrTxDevice"),
            kernel.GetValueOrDefault("TlsCurrRxSw") + kernel.GetValueOrDefault("TlsCurrRxDevice"),
            GC.GetTotalMemory(forceFullCollection: true),
            ReadResident());
    }

    /// <summary>
    /// Returns the descriptors, except for assemblies and their symbols, which the runtime opens on first use, and for
    /// that of the listing itself.
    /// </summary>
    private static List<string> ReadDescriptors() =>
    [
        .. from descriptor in Directory.GetFiles("/proc/self/fd")
           let target = new FileInfo(descriptor).LinkTarget
           where target is not null
               && !target.EndsWith(".dll", StringComparison.Ordinal)
               && !target.EndsWith(".pdb", StringComparison.Ordinal)
               && !target.StartsWith("/proc/", StringComparison.Ordinal)
           orderby target
           select target,
    ];

    /// <summary>
    /// Makes libc return the memory that it holds for later allocations. The C library of musl holds little.
    /// </summary>
    private static void ReturnFreeMemory()
    {
        try
        {
            _ = Trim(0);
        }
        catch (EntryPointNotFoundException)
        {
            // Only glibc has this function.
        }
    }

    [LibraryImport("libc", EntryPoint = "malloc_trim")]
    private static partial int Trim(nuint pad);

    private static long ReadResident()
    {
        string line = File.ReadLines("/proc/self/status").Single(l => l.StartsWith("VmRSS:", StringComparison.Ordinal));
        return 1024 * long.Parse(line.Split((char[]?)null, StringSplitOptions.RemoveEmptyEntries)[1], CultureInfo.InvariantCulture);
    }
}

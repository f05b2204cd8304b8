using System.Globalization;

namespace KernelTls.Bench.Scenarios;

/// <summary>Represents the memory in use, in bytes.</summary>
/// <param name="Resident">
/// The resident memory of this process (VmRSS): managed heap, native heap, stacks and mapped files.
/// </param>
/// <param name="Kernel">
/// The memory of the machine's kernel: slabs (sockets, TLS contexts, keys), page tables, stacks, vmalloc and per-CPU
/// memory.
/// </param>
internal readonly record struct MemoryInUse(long Resident, long Kernel)
{
    // Memory that is not free is not a suitable measure. The kernel keeps lists of free pages for each CPU and does not
    // count them as free.
    private static readonly string[] s_kernel = ["Slab", "PageTables", "KernelStack", "VmallocUsed", "Percpu"];

    public static MemoryInUse Read()
    {
        for (int i = 0; i < 2; i++)
        {
            GC.Collect(GC.MaxGeneration, GCCollectionMode.Aggressive, blocking: true, compacting: true);
            GC.WaitForPendingFinalizers();
        }

        Dictionary<string, long> machine = ReadFields("/proc/meminfo");
        return new MemoryInUse(ReadFields("/proc/self/status")["VmRSS"], s_kernel.Sum(field => machine.GetValueOrDefault(field)));
    }

    /// <summary>Reads lines such as "VmRSS:     1234 kB" and returns their values in bytes.</summary>
    private static Dictionary<string, long> ReadFields(string path) => File.ReadLines(path)
        .Select(line => line.Split((char[]?)null, StringSplitOptions.RemoveEmptyEntries))
        .Where(fields => fields.Length == 3 && fields[2] == "kB")
        .ToDictionary(fields => fields[0].TrimEnd(':'), fields => 1024 * long.Parse(fields[1], CultureInfo.InvariantCulture));
}

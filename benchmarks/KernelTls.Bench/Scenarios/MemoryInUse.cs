using System.Globalization;

namespace KernelTls.Bench.Scenarios;

/// <summary>Bytes of memory in use.</summary>
/// <param name="Resident">VmRSS of this process: managed heap, native heap, stacks, mapped files.</param>
/// <param name="Kernel">Of the machine: slabs (sockets, TLS contexts, keys), page tables, stacks, vmalloc and per-CPU memory.</param>
internal readonly record struct MemoryInUse(long Resident, long Kernel)
{
    // What is not free is no measure: the kernel keeps lists of free pages for each CPU that it does not count as free.
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

    /// <summary>Lines such as "VmRSS:     1234 kB", in bytes.</summary>
    private static Dictionary<string, long> ReadFields(string path) => File.ReadLines(path)
        .Select(line => line.Split((char[]?)null, StringSplitOptions.RemoveEmptyEntries))
        .Where(fields => fields.Length == 3 && fields[2] == "kB")
        .ToDictionary(fields => fields[0].TrimEnd(':'), fields => 1024 * long.Parse(fields[1], CultureInfo.InvariantCulture));
}

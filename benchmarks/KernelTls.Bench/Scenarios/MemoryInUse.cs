using System.Globalization;

namespace KernelTls.Bench.Scenarios;

/// <summary>Bytes of memory in use.</summary>
/// <param name="Resident">VmRSS of this process: managed heap, native heap, stacks, mapped files.</param>
/// <param name="Kernel">The machine's memory less what is free, page cache, or memory of processes.</param>
internal readonly record struct MemoryInUse(long Resident, long Kernel)
{
    public static MemoryInUse Read()
    {
        for (int i = 0; i < 2; i++)
        {
            GC.Collect(GC.MaxGeneration, GCCollectionMode.Aggressive, blocking: true, compacting: true);
            GC.WaitForPendingFinalizers();
        }

        Dictionary<string, long> machine = ReadFields("/proc/meminfo");
        return new MemoryInUse(
            ReadFields("/proc/self/status")["VmRSS"],
            machine["MemTotal"] - machine["MemFree"] - machine["Buffers"] - machine["Cached"] - machine["AnonPages"]);
    }

    /// <summary>Lines such as "VmRSS:     1234 kB", in bytes.</summary>
    private static Dictionary<string, long> ReadFields(string path) => File.ReadLines(path)
        .Select(line => line.Split((char[]?)null, StringSplitOptions.RemoveEmptyEntries))
        .Where(fields => fields.Length == 3 && fields[2] == "kB")
        .ToDictionary(fields => fields[0].TrimEnd(':'), fields => 1024 * long.Parse(fields[1], CultureInfo.InvariantCulture));
}

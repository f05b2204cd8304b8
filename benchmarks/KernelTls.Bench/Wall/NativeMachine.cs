namespace KernelTls.Bench.Wall;

/// <summary>Whether time means anything here, and whether there is kernel TLS to take the time of.</summary>
internal static class NativeMachine
{
    /// <summary>Why nothing is to be measured by the clock on this machine; null: it can be.</summary>
    public static string? ReasonToRefuse() => ReasonToRefuse(
        Environment.GetEnvironmentVariable("KTLS_CELL"),
        File.ReadAllText("/proc/cpuinfo"),
        KtlsPlatform.IsSupported ? null : $"{KtlsPlatform.NotSupportedReason}");

    /// <param name="cell">The lab's name for this machine; null: it is none of the lab's.</param>
    /// <param name="processor">/proc/cpuinfo.</param>
    /// <param name="notSupported">Why there is no kernel TLS; null: there is.</param>
    public static string? ReasonToRefuse(string? cell, string processor, string? notSupported) =>
        processor.Contains("User Mode Linux", StringComparison.Ordinal)
            ? "this machine is User-Mode Linux, a process of another kernel: its clock says nothing about a processor"
        : cell is not null
            ? $"this is the lab's cell {cell}, an emulated machine: its clock says nothing about a processor"
        : processor.Contains("QEMU TCG", StringComparison.Ordinal)
            ? "this machine's processor is emulated (QEMU TCG): its clock says nothing about a processor"
        : notSupported is not null
            ? $"this machine has no kernel TLS ({notSupported}), and what is emulated cannot be timed; eng/bench without --wall counts instructions"
        : null;

    /// <summary>The processor's own name, and how many of them .NET uses.</summary>
    public static string Describe()
    {
        string? model = File.ReadLines("/proc/cpuinfo").FirstOrDefault(line => line.StartsWith("model name", StringComparison.Ordinal));
        return $"{Environment.ProcessorCount} x {model?.Split(':')[^1].Trim() ?? "unknown processor"}";
    }
}

namespace KernelTls.Bench.Wall;

/// <summary>
/// Determines whether wall-clock time is meaningful on this machine and whether it has kernel TLS to measure.
/// </summary>
internal static class NativeMachine
{
    /// <summary>
    /// Returns the reason why this machine cannot measure kernel TLS by the wall clock, or null if it can.
    /// </summary>
    public static string? ReasonToRefuse() => ReasonToRefuse(
        Environment.GetEnvironmentVariable("KTLS_CELL"),
        File.ReadAllText("/proc/cpuinfo"),
        KtlsPlatform.Probe().IsSupported ? null : $"{KtlsPlatform.Probe().NotSupportedReason}");

    /// <summary>
    /// Returns the reason why this machine cannot measure by the wall clock, or null if it can. Unlike
    /// <see cref="ReasonToRefuse()"/>, this method does not require kernel TLS.
    /// </summary>
    public static string? ReasonToRefuseClock() =>
        ReasonToRefuse(Environment.GetEnvironmentVariable("KTLS_CELL"), File.ReadAllText("/proc/cpuinfo"), notSupported: null);

    /// <param name="cell">The lab's name for this machine, or null if the machine is not a lab cell.</param>
    /// <param name="processor">The content of /proc/cpuinfo.</param>
    /// <param name="notSupported">The reason why kernel TLS is not supported, or null if it is supported.</param>
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

    /// <summary>Returns the number of processors that .NET uses and the name of the model.</summary>
    public static string Describe()
    {
        string? model = File.ReadLines("/proc/cpuinfo").FirstOrDefault(line => line.StartsWith("model name", StringComparison.Ordinal));
        return $"{Environment.ProcessorCount} x {model?.Split(':')[^1].Trim() ?? "unknown processor"}";
    }
}

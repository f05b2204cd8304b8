namespace KernelTls.Tool.Watching;

/// <summary>One look of <c>ktls top</c>.</summary>
/// <param name="Time">When, UTC.</param>
/// <param name="Seconds">Since the look before; 0 for the first.</param>
/// <param name="Counters">The kernel's counters; <see langword="null"/>: it has none.</param>
/// <param name="PerSecond">Those that changed, per second.</param>
/// <param name="Process">What the watched process said, if there is one.</param>
/// <param name="Ended">The watched process has ended.</param>
internal sealed record TopFrame(
    DateTime Time,
    double Seconds,
    IReadOnlyDictionary<string, long>? Counters,
    IReadOnlyDictionary<string, double> PerSecond,
    ProcessEvents.Snapshot? Process,
    bool Ended);

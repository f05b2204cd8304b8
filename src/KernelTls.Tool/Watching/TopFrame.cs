namespace KernelTls.Tool.Watching;

/// <summary>Contains one sample of <c>ktls top</c>.</summary>
/// <param name="Time">The time of the sample, UTC.</param>
/// <param name="Seconds">The time since the previous sample; 0 for the first.</param>
/// <param name="Counters">The kernel's counters, or <see langword="null"/> if it has none.</param>
/// <param name="PerSecond">The rates of the counters that changed.</param>
/// <param name="Process">The events of the watched process, or null.</param>
/// <param name="Ended">Whether the watched process has ended.</param>
internal sealed record TopFrame(
    DateTime Time,
    double Seconds,
    IReadOnlyDictionary<string, long>? Counters,
    IReadOnlyDictionary<string, double> PerSecond,
    ProcessEvents.Snapshot? Process,
    bool Ended);

namespace KernelTls.Tests;

/// <summary>Provides the time limits for faults.</summary>
internal static class FaultLimits
{
    /// <summary>Gets the time after which an operation counts as hanging.</summary>
    public static TimeSpan Hang { get; } = Limits.Wait;

    /// <summary>Gets the time to wait for silence, if the stock stack waits too.</summary>
    public static TimeSpan Silence { get; } = TimeSpan.FromSeconds(2);
}

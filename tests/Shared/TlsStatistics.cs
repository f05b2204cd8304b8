namespace KernelTls.Tests;

/// <summary>
/// Contains the kernel's counters in /proc/net/tls_stat. A counter that this kernel does not have is 0.
/// </summary>
internal readonly record struct TlsStatistics(
    long SendSoftware,
    long ReceiveSoftware,
    long CurrentSendSoftware,
    long CurrentReceiveSoftware,
    long DecryptError,
    long ReceiveRekeyOk,
    long SendRekeyOk,
    long DecryptRetry,
    long NoPaddingViolation)
{
    /// <summary>Reads the counters of the process's network namespace.</summary>
    public static TlsStatistics Read() => Read(TlsStat.Path);

    /// <summary>Reads the counters of the calling thread's network namespace.</summary>
    public static TlsStatistics ReadOfThread() => Read("/proc/thread-self/net/tls_stat");

    private static TlsStatistics Read(string path)
    {
        SortedDictionary<string, long> values = TlsStat.Read(path) ?? throw new FileNotFoundException("The kernel has no TLS.", path);
        return new TlsStatistics(
            values.GetValueOrDefault("TlsTxSw"),
            values.GetValueOrDefault("TlsRxSw"),
            values.GetValueOrDefault("TlsCurrTxSw"),
            values.GetValueOrDefault("TlsCurrRxSw"),
            values.GetValueOrDefault("TlsDecryptError"),
            values.GetValueOrDefault("TlsRxRekeyOk"),
            values.GetValueOrDefault("TlsTxRekeyOk"),
            values.GetValueOrDefault("TlsDecryptRetry"),
            values.GetValueOrDefault("TlsRxNoPadViolation"));
    }

    /// <summary>
    /// Waits until the condition holds. A closed socket leaves the kernel only when its last segment is acknowledged,
    /// so the counters follow a little later.
    /// </summary>
    public static async Task UntilAsync(Func<TlsStatistics, bool> condition, string what)
    {
        using PeriodicTimer timer = new(TimeSpan.FromMilliseconds(20));
        for (long deadline = Environment.TickCount64 + (long)Limits.Wait.TotalMilliseconds; !condition(Read());)
        {
            Assert.True(Environment.TickCount64 < deadline, $"Waited {Limits.Wait.TotalSeconds} s for {what}: {Read()}");
            await timer.WaitForNextTickAsync();
        }
    }
}

namespace KernelTls.Bench.Servers;

/// <summary>
/// Reads the processor time of a process's thread that compiles hot methods. Its work can fall into any round and ends
/// eventually, so it does not belong to any operation.
/// </summary>
internal static class CompilerClock
{
    /// <summary>The names of the thread in .NET 10 and .NET 11, truncated to the length that Linux keeps.</summary>
    private static readonly string[] s_threadNames = [".NET Tiered Com", ".NET Tiered JIT"];

    /// <summary>
    /// Returns the processor time of the thread. Returns zero if the process has no such thread, because it is not a
    /// .NET process or has not compiled anything yet.
    /// </summary>
    public static TimeSpan Read(int processId)
    {
        string? thread = ThreadStates.List($"/proc/{processId}/task")
            .FirstOrDefault(thread => s_threadNames.Contains(ThreadStates.Read(Path.Combine(thread, "comm"))));
        return thread is null ? TimeSpan.Zero : ThreadStates.UsedBy(thread);
    }
}

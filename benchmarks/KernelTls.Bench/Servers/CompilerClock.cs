namespace KernelTls.Bench.Servers;

/// <summary>
/// What a process's compiler of hot methods has used of the processor. Its work falls into any round and ends some day: it is no
/// operation's.
/// </summary>
internal static class CompilerClock
{
    /// <summary>What .NET calls the thread, as far as Linux keeps a name.</summary>
    private const string ThreadName = ".NET Tiered Com";

    /// <summary>Nothing in a process that has no such thread, which is not .NET's or has not compiled anything yet.</summary>
    public static TimeSpan Read(int processId)
    {
        string? thread = ThreadStates.List($"/proc/{processId}/task")
            .FirstOrDefault(thread => ThreadStates.Read(Path.Combine(thread, "comm")) == ThreadName);
        return thread is null ? TimeSpan.Zero : ThreadStates.UsedBy(thread);
    }
}

namespace KernelTls.Diagnostics;

/// <summary>
/// Writes a line to the standard error for each kind of connection, fallback and endpoint, once, if <c>KERNELTLS_LOG=1</c> is in the
/// environment: for programs without a log, and for those whose log has another level.
/// </summary>
internal static class ProcessLog
{
    /// <summary>The variable that switches the log on.</summary>
    public const string Variable = "KERNELTLS_LOG";

    private static readonly bool s_isOn = Environment.GetEnvironmentVariable(Variable) is "1" or "true";

    /// <summary>Writes the kind, if the log is on.</summary>
    public static void Write(IProcessKind kind)
    {
        if (s_isOn)
        {
            Write(kind.Describe());
        }
    }

    /// <summary>Writes the line, if the log is on.</summary>
    public static void Write(StatusEntry entry)
    {
        if (s_isOn)
        {
            Console.Error.WriteLine($"KernelTls: {entry}");
        }
    }
}

namespace KernelTls.Tool;

/// <summary>Ends a command with an exit code and one message that says what was expected and what to do.</summary>
internal sealed class ToolFailedException(int exitCode, string message, Exception? innerException = null)
    : Exception(message, innerException)
{
    public int ExitCode { get; } = exitCode;
}

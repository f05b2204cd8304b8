namespace KernelTls.Tool;

/// <summary>
/// The exception that ends a command with an exit code and a message that says what was expected and how to fix it.
/// </summary>
internal sealed class ToolFailedException(int exitCode, string message, Exception? innerException = null)
    : Exception(message, innerException)
{
    public int ExitCode { get; } = exitCode;
}

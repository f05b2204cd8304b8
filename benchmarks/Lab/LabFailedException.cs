namespace KernelTls.Lab;

/// <summary>The exception that is thrown when a run has no result. The message is shown to the user.</summary>
internal sealed class LabFailedException : Exception
{
    public LabFailedException(string message)
        : base(message)
    {
    }

    public LabFailedException(string message, Exception inner)
        : base(message, inner)
    {
    }
}

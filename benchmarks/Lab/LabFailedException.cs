namespace KernelTls.Lab;

/// <summary>A run that came to no result; the message is what the user reads.</summary>
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

namespace KernelTls.LoadTest;

/// <summary>The exception that is thrown when a run has no result. The message is shown to the user.</summary>
internal sealed class LoadTestFailedException : Exception
{
    public LoadTestFailedException(string message)
        : base(message)
    {
    }

    public LoadTestFailedException(string message, Exception inner)
        : base(message, inner)
    {
    }
}

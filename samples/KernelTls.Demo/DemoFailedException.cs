namespace KernelTls.Demo;

/// <summary>The exception that is thrown if a result is not as expected. The user reads its message.</summary>
internal sealed class DemoFailedException : Exception
{
    public DemoFailedException(string message)
        : base(message)
    {
    }
}

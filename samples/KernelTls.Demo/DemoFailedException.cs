namespace KernelTls.Demo;

/// <summary>The demo did not come to what was expected; the message is what the user reads.</summary>
internal sealed class DemoFailedException : Exception
{
    public DemoFailedException(string message)
        : base(message)
    {
    }
}

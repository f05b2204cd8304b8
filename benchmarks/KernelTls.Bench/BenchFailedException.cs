namespace KernelTls.Bench;

/// <summary>What was measured is not what was to be measured; the message is what the user reads.</summary>
internal sealed class BenchFailedException : Exception
{
    public BenchFailedException(string message)
        : base(message)
    {
    }
}

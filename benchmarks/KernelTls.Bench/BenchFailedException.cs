namespace KernelTls.Bench;

/// <summary>
/// The exception that is thrown when a measurement did not measure what it was intended to measure. The message is
/// shown to the user.
/// </summary>
internal sealed class BenchFailedException : Exception
{
    public BenchFailedException(string message)
        : base(message)
    {
    }
}

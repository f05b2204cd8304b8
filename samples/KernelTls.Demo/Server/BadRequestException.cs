namespace KernelTls.Demo.Server;

/// <summary>The request cannot be understood; where the next one would begin is unknown, so the connection ends.</summary>
internal sealed class BadRequestException : Exception
{
    public BadRequestException(int status, string message)
        : base(message) => Status = status;

    /// <summary>Status code of the response.</summary>
    public int Status { get; }
}

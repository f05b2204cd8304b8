namespace KernelTls;

/// <summary>
/// The exception that is thrown when the keys of a TLS 1.3 connection must change (RFC 8446, section 4.6.3) but cannot,
/// or when the peer changes them too often.
/// </summary>
/// <remarks>The connection ends before an incorrect byte is sent or delivered.</remarks>
public sealed class KtlsRekeyException : IOException
{
    /// <summary>Initializes a new instance of the <see cref="KtlsRekeyException"/> class without a kind of failure.</summary>
    public KtlsRekeyException()
    {
    }

    /// <inheritdoc cref="KtlsRekeyException()" path="/summary"/>
    /// <param name="message">The message that describes the error and how to resolve it.</param>
    public KtlsRekeyException(string? message)
        : base(message)
    {
    }

    /// <inheritdoc cref="KtlsRekeyException()" path="/summary"/>
    /// <param name="message">The message that describes the error and how to resolve it.</param>
    /// <param name="innerException">The exception that caused this one, or <see langword="null"/>.</param>
    public KtlsRekeyException(string? message, Exception? innerException)
        : base(message, innerException)
    {
    }

    /// <summary>Initializes a new instance of the <see cref="KtlsRekeyException"/> class.</summary>
    /// <param name="failure">The kind of failure.</param>
    /// <param name="message">The message that describes the error and how to resolve it.</param>
    /// <param name="innerException">The exception that caused this one, or <see langword="null"/>.</param>
    public KtlsRekeyException(KtlsRekeyFailure failure, string message, Exception? innerException = null)
        : base(message, innerException) => Failure = failure;

    /// <summary>Gets the kind of failure. Zero if the exception was created without one, as this library never does.</summary>
    public KtlsRekeyFailure Failure { get; }
}

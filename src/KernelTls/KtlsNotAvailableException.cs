using System.Security.Authentication;

namespace KernelTls;

/// <summary>
/// The exception that is thrown when a connection cannot use kernel TLS or OpenSSL and must not, or no longer can, fall back to SslStream.
/// </summary>
/// <remarks>
/// That is the case with <see cref="KtlsMode.Required"/>, and if a server's options callback returns options that only SslStream supports.
/// </remarks>
public sealed class KtlsNotAvailableException : AuthenticationException
{
    /// <summary>Initializes a new instance of the <see cref="KtlsNotAvailableException"/> class without a reason.</summary>
    public KtlsNotAvailableException()
    {
    }

    /// <inheritdoc cref="KtlsNotAvailableException()" path="/summary"/>
    /// <param name="message">The message that describes the error and how to resolve it.</param>
    public KtlsNotAvailableException(string? message)
        : base(message)
    {
    }

    /// <inheritdoc cref="KtlsNotAvailableException()" path="/summary"/>
    /// <param name="message">The message that describes the error and how to resolve it.</param>
    /// <param name="innerException">The exception that caused this one, or <see langword="null"/>.</param>
    public KtlsNotAvailableException(string? message, Exception? innerException)
        : base(message, innerException)
    {
    }

    /// <summary>Initializes a new instance of the <see cref="KtlsNotAvailableException"/> class.</summary>
    /// <param name="reason">The reason why kernel TLS is not available.</param>
    /// <param name="message">The message that describes the error and how to resolve it.</param>
    public KtlsNotAvailableException(KtlsFallbackReason reason, string message)
        : base(message) => Reason = reason;

    /// <summary>
    /// Gets the reason why kernel TLS is not available. <see cref="KtlsFallbackReason.None"/> if the exception was created without one,
    /// as this library never does.
    /// </summary>
    public KtlsFallbackReason Reason { get; }
}

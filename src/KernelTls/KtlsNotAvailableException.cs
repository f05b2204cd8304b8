using System.Security.Authentication;

namespace KernelTls;

/// <summary>
/// The exception that is thrown when <see cref="KtlsMode.Required"/> is set and a direction of the connection cannot
/// use kernel TLS.
/// </summary>
public sealed class KtlsNotAvailableException : AuthenticationException
{
    /// <summary>Initializes a new instance of the <see cref="KtlsNotAvailableException"/> class.</summary>
    /// <param name="reason">The reason why kernel TLS is not available.</param>
    /// <param name="message">The message that describes the error and how to resolve it.</param>
    public KtlsNotAvailableException(KtlsFallbackReason reason, string message)
        : base(message) => Reason = reason;

    /// <summary>Gets the reason why kernel TLS is not available.</summary>
    public KtlsFallbackReason Reason { get; }
}

using System.Security.Authentication;

namespace KernelTls;

/// <summary>Kernel TLS was <see cref="KtlsMode.Required"/> and a direction of the connection cannot have it.</summary>
public sealed class KtlsNotAvailableException : AuthenticationException
{
    /// <summary>Creates the exception for a reason.</summary>
    /// <param name="reason">Why kernel TLS is not to be had.</param>
    /// <param name="message">What was expected and what to do about it.</param>
    public KtlsNotAvailableException(KtlsFallbackReason reason, string message)
        : base(message) => Reason = reason;

    /// <summary>Why kernel TLS is not to be had.</summary>
    public KtlsFallbackReason Reason { get; }
}

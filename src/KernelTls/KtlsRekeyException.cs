namespace KernelTls;

/// <summary>
/// The keys of a TLS 1.3 connection must change (RFC 8446, section 4.6.3) and cannot, or the peer changes them too often.
/// The connection ends before a wrong byte is sent or delivered.
/// </summary>
public sealed class KtlsRekeyException : IOException
{
    /// <summary>Creates the exception.</summary>
    /// <param name="failure">What went wrong.</param>
    /// <param name="message">What happened and what to do about it.</param>
    /// <param name="innerException">The failure underneath, if there is one.</param>
    public KtlsRekeyException(KtlsRekeyFailure failure, string message, Exception? innerException = null)
        : base(message, innerException) => Failure = failure;

    /// <summary>What went wrong.</summary>
    public KtlsRekeyFailure Failure { get; }
}

namespace KernelTls;

/// <summary>
/// The keys of a TLS 1.3 connection must change (RFC 8446, section 4.6.3) and the kernel or OpenSSL at hand cannot do that
/// while the kernel holds them: Linux 6.14 and OpenSSL 3.2 can. The connection is closed before a wrong byte is sent or
/// delivered.
/// </summary>
public sealed class KtlsRekeyException : IOException
{
    /// <summary>Creates the exception.</summary>
    /// <param name="message">What happened and what to do about it.</param>
    /// <param name="innerException">The failure underneath, if there is one.</param>
    public KtlsRekeyException(string message, Exception? innerException = null)
        : base(message, innerException)
    {
    }
}

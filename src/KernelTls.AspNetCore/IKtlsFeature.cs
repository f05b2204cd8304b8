namespace KernelTls.AspNetCore;

/// <summary>
/// A connection feature: what became of the TLS of this connection. Set on connections that this package's transport shook
/// hands on, and read like any other: <c>HttpContext.Features.Get&lt;IKtlsFeature&gt;()</c>. Where it is missing, the stock
/// middleware serves the connection.
/// </summary>
public interface IKtlsFeature
{
    /// <summary>Who encrypts and decrypts and, where it is not the kernel, why.</summary>
    KtlsOffload Offload { get; }
}
